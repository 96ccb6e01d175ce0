#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/millraced.h"
#include "tests/support/raw_socket.h"
#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

// With MILLRACE_OPENAPI_OUT the document is left there for the independent validator (integration/openapi_validator).
TEST(OpenApi, TheDaemonDescribesItself) {
  TempDir dir;
  Process daemon(kMillraced, daemon_on(dir.path() / "data"));
  auto port = daemon.wait_for_port();
  ASSERT_TRUE(port) << daemon.err();
  auto socket = RawSocket::tcp(*port);
  socket.send("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto answer = socket.read_answer();
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->status, 200) << answer->body;
  auto document = nlohmann::json::parse(answer->body, nullptr, false);
  ASSERT_TRUE(document.is_object()) << answer->body;
  EXPECT_TRUE(document["openapi"].get<std::string>().starts_with("3.1.")) << document["openapi"];
  EXPECT_FALSE(document["info"]["version"].get<std::string>().empty());
  EXPECT_TRUE(document["paths"].contains("/v1/topics/{topic}/records"));
  if (const char* path = std::getenv("MILLRACE_OPENAPI_OUT")) std::ofstream(path) << answer->body;
}

}  // namespace
}  // namespace millrace::tests
