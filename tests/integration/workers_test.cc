// The workers of the real daemon: none while there is no processor, and that is said. The drill is part of the crash
// tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/integration/millraced.h"
#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class Workers : public testing::Test {
 protected:
  std::string run(std::vector<std::string> arguments, int exit = 0) {
    arguments.insert(arguments.begin(), {"--server", server_});
    Process client(MILLRACE_PATH, {.arguments = arguments});
    EXPECT_EQ(client.wait(), exited(exit)) << client.err();
    return exit == 0 ? client.out() : client.err();
  }

  TempDir dir_;
  Process daemon_{kMillraced, daemon_on(dir_.path() / "data")};
  std::string server_ = "http://127.0.0.1:" + std::to_string(daemon_.wait_for_port().value_or(0));
};

TEST_F(Workers, AreNoneWithoutAProcessor) {
  const Json listed = Json::parse(run({"--json", "workers", "list"}));
  EXPECT_TRUE(listed["workers"].empty());
  EXPECT_TRUE(listed["processors"].empty());
  EXPECT_THAT(run({"workers", "list"}), HasSubstr("WORKER"));
  EXPECT_THAT(run({"workers", "stop", "1"}, 1), HasSubstr("UNKNOWN_WORKER"));
  EXPECT_THAT(run({"workers", "stop", "4294967297"}, 1), HasSubstr("UNKNOWN_WORKER"));
  EXPECT_THAT(run({"workers", "stop", "x"}, 1), HasSubstr("INVALID_PARAMETER"));
  EXPECT_EQ(daemon_.stop(), exited(0));
}

}  // namespace
}  // namespace millrace::tests
