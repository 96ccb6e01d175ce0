// A consumer group over the real daemon and client, through a SIGKILL.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/integration/millraced.h"
#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

class GroupClient : public testing::Test {
 protected:
  std::string run(const std::string& server, std::vector<std::string> arguments, std::string input = "") {
    arguments.insert(arguments.begin(), {"--server", server});
    Process client(MILLRACE_PATH, {.arguments = arguments, .input = std::move(input)});
    EXPECT_EQ(client.wait(), exited(0)) << testing::PrintToString(arguments) << client.err();
    return client.out();
  }
  static std::string url(Process& daemon) {
    return "http://127.0.0.1:" + std::to_string(daemon.wait_for_port().value_or(0));
  }
  TempDir dir_;
};

TEST_F(GroupClient, CommittedOffsetsSurviveAKill) {
  {
    Process daemon(kMillraced, daemon_on(dir_.path() / "data"));
    const std::string server = url(daemon);
    run(server, {"topics", "create", "t", "--partitions", "3"});
    run(server, {"produce", "t"}, "1\n2\n3\n4\n5\n");
    EXPECT_EQ(run(server, {"consume", "--group", "g", "t", "--limit", "3"}), "1\n2\n3\n");
    daemon.send(SIGKILL);
    daemon.wait();
  }
  Process daemon(kMillraced, daemon_on(dir_.path() / "data"));
  const std::string server = url(daemon);
  EXPECT_EQ(run(server, {"consume", "--group", "g", "t", "--limit", "2"}), "4\n5\n");
  auto group = nlohmann::json::parse(run(server, {"groups", "show", "g", "--json"}));
  EXPECT_EQ(group["state"], "Empty");
  EXPECT_EQ(group["totalLag"], "0");
  run(server, {"groups", "reset-offsets", "g", "--to", "earliest"});
  EXPECT_EQ(run(server, {"consume", "--group", "g", "t", "--limit", "5"}), "1\n2\n3\n4\n5\n");
  EXPECT_EQ(run(server, {"groups", "list", "--names"}), "g\n");
  run(server, {"groups", "delete", "g"});
  EXPECT_EQ(run(server, {"groups", "list", "--names"}), "");
}

}  // namespace
}  // namespace millrace::tests
