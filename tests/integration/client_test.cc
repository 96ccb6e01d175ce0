// The command line client against the real daemon: what one prints the other takes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/integration/millraced.h"
#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

class Client : public testing::Test {
 protected:
  Client() : daemon_(kMillraced, daemon_on(dir_.path() / "data")) {
    server_ = "http://127.0.0.1:" + std::to_string(daemon_.wait_for_port().value_or(0));
  }
  /// What it wrote to standard output; fails the test when it failed.
  std::string run(std::vector<std::string> arguments, std::string input = "") {
    arguments.insert(arguments.begin(), {"--server", server_});
    Process client(MILLRACE_PATH, {.arguments = arguments, .input = std::move(input)});
    EXPECT_EQ(client.wait(), exited(0)) << testing::PrintToString(arguments) << client.err();
    return client.out();
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
      lines.push_back(text.substr(at, end - at));
    return lines;
  }

  TempDir dir_;
  Process daemon_;
  std::string server_;
};

TEST_F(Client, CopiesATopicThroughAPipe) {
  run({"topics", "create", "from", "--partitions", "1"});
  run({"topics", "create", "to", "--partitions", "1"});
  run({"produce", "from", "--json"},
      R"({"key":"k","value":{"a":[1,2]},"headers":[{"name":"h","value":"v"}],"timestamp":"2026-01-02T03:04:05.678Z"})"
      "\n"
      R"({"value":{"type":"BINARY","data":"AP8="},"timestamp":9223372036854775807})"
      "\n"
      R"({"key":"gone","value":null})"
      "\n");
  const std::string consumed = run({"consume", "from", "--from", "earliest", "--json"});
  EXPECT_EQ(lines_of(consumed).size(), 3u) << consumed;
  run({"produce", "to", "--json"}, consumed);
  EXPECT_EQ(run({"consume", "to", "--from", "earliest", "--json"}), consumed);
}

}  // namespace
}  // namespace millrace::tests
