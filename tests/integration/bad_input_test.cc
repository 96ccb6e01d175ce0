// What comes from outside must not crash or starve the real daemon, and each refusal says what to do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/integration/millraced.h"
#include "tests/support/raw_socket.h"
#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class BadInput : public testing::Test {
 protected:
  void start(std::vector<std::string> more = {}, std::map<int, uint64_t> limits = {}) {
    auto options = daemon_on(data(), std::move(more));
    options.limits = std::move(limits);
    daemon_.emplace(kMillraced, options);
    port_ = daemon_->wait_for_port().value_or(0);
    ASSERT_TRUE(daemon_->wait_for_err("ready")) << daemon_->err();
  }
  RawSocket connect() const { return RawSocket::tcp(port_); }

  std::string request(const std::string& method, const std::string& target, const std::string& body = "") const {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) + "\r\n";
    if (!body.empty())
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
  }
  RawSocket::Answer ask(RawSocket socket, const std::string& text) const {
    socket.send(text);
    return socket.read_answer().value_or(RawSocket::Answer{});
  }
  static std::string code_of(const RawSocket::Answer& answer) {
    auto problem = json::parse(answer.body, nullptr, false);
    return problem.is_object() ? problem.value("code", "no code") : "no problem: " + answer.body;
  }
  /// Still ready, still writing, and ends as a healthy daemon does.
  void expect_whole() {
    EXPECT_EQ(ask(connect(), request("GET", "/v1/node/ready")).status, 200);
    EXPECT_EQ(ask(connect(), request("POST", "/v1/topics", R"({"name":"after"})")).status, 201);
    EXPECT_EQ(ask(connect(), request("POST", "/v1/topics/after/records", R"({"records":[{"value":"x"}]})")).status,
              200);
    EXPECT_EQ(daemon_->stop(), exited(0)) << daemon_->err();
  }
  std::string data() const { return (dir_.path() / "data").string(); }

  TempDir dir_;
  std::optional<Process> daemon_;
  uint16_t port_ = 0;
};

/// For the clients, which live in the test's process.
class OpenFiles {
 public:
  explicit OpenFiles(rlim_t wanted) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit more = before_;
    more.rlim_cur = std::min(wanted, more.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &more);
  }
  ~OpenFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(BadInput, TwoThousandIdleConnectionsLeaveRoom) {
  OpenFiles files(10'000);
  start({"--set", "http.maxConnectionsPerAddress=2048"});
  std::vector<RawSocket> idle;
  for (int i = 0; i < 2'000; ++i) idle.push_back(connect());
  EXPECT_EQ(ask(connect(), request("GET", "/v1/node/ready")).status, 200);
  EXPECT_EQ(ask(std::move(idle.back()), request("GET", "/v1/node/ready")).status, 200);
  expect_whole();
}

TEST_F(BadInput, OneAddressTakesItsShareAndTheUnixSocketStaysOpen) {
  OpenFiles files(10'000);
  start();
  std::vector<RawSocket> idle;
  for (int i = 0; i < 1'536; ++i) idle.push_back(connect());
  // Connections are taken in order, so that this one is over the share for certain.
  RawSocket late = connect();
  auto refused = late.read_answer();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 429);
  EXPECT_THAT(refused->body, HasSubstr("http.maxConnectionsPerAddress"));
  EXPECT_EQ(ask(RawSocket::unix_socket(data() + "/millrace.sock"), request("GET", "/v1/node/ready")).status, 200);
  idle.clear();
  daemon_->stop();
}

TEST_F(BadInput, SlowHeaderAndSlowBodyAreCutOff) {
  start({"--set", "http.requestTimeout=200ms"});
  RawSocket header = connect(), body = connect();
  header.send("GET /v1/node HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ");
  std::string whole = request("POST", "/v1/topics", R"({"name":"never"})");
  body.send(whole.substr(0, whole.size() - 1));
  for (RawSocket* slow : {&header, &body}) {
    auto answer = slow->read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 408);
    EXPECT_EQ(code_of(*answer), "REQUEST_TIMEOUT");
  }
  EXPECT_EQ(ask(connect(), request("GET", "/v1/topics/never")).status, 404);
  expect_whole();
}

TEST_F(BadInput, ADeclaredGibibyteIsRefused) {
  start();
  auto answer = ask(connect(),
                    "POST /v1/topics/t/records HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                    "Content-Length: 1073741824\r\n\r\n{");
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(code_of(answer), "BODY_TOO_LARGE");
  EXPECT_THAT(answer.body, HasSubstr("1073741824"));
  expect_whole();
}

TEST_F(BadInput, AHundredThousandBracketsAreRefused) {
  start();
  ask(connect(), request("POST", "/v1/topics", R"({"name":"deep"})"));
  for (const std::string& opening : {std::string(R"({"a":)"), std::string("[")}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += opening;
    for (const char* target : {"/v1/topics", "/v1/topics/deep/records"}) {
      auto answer = ask(connect(), request("POST", target, deep));
      EXPECT_EQ(answer.status, 400);
      EXPECT_EQ(code_of(answer), "INVALID_JSON");
      EXPECT_THAT(answer.body, HasSubstr("deep"));
    }
  }
  expect_whole();
}

TEST_F(BadInput, OutOfDescriptorsItSaysSoAndGoesOn) {
#ifdef __SANITIZE_ADDRESS__
  // UBSan looks at an object through a pipe, and takes it for no object when there is no descriptor for one.
  GTEST_SKIP() << "the sanitizer itself needs descriptors";
#endif
  OpenFiles files(10'000);
  // Enough for the store; connections take the rest.
  start({}, {{RLIMIT_NOFILE, 160}});
  std::vector<RawSocket> clients;
  size_t told = 0;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(connect());
    clients.back().send(request("GET", "/v1/node/ready"));
    auto answer = clients.back().read_answer();
    if (answer && answer->status == 503 && code_of(*answer) == "NO_DESCRIPTORS") ++told;
  }
  EXPECT_GT(told, 0u);
  clients.clear();
  // Whether the daemon has seen the closes yet is its business: ask until it has.
  while (ask(connect(), request("GET", "/v1/node/ready")).status != 200) {
  }
  daemon_->stop();
}

TEST_F(BadInput, APortInUseIsNamed) {
  start();
  auto options = daemon_on((dir_.path() / "other").string());
  options.arguments.back() = "http.listen=127.0.0.1:" + std::to_string(port_);
  Process second(kMillraced, options);
  auto status = second.wait();
  ASSERT_TRUE(status);
  EXPECT_NE(status, exited(0));
  EXPECT_THAT(second.err(), HasSubstr("127.0.0.1:" + std::to_string(port_)));
  EXPECT_THAT(second.err(), HasSubstr("ADDRESS_IN_USE"));
  EXPECT_THAT(second.err(), HasSubstr("http.listen"));
  expect_whole();
}

TEST_F(BadInput, ADataDirectoryThatCannotBeWrittenIsNamed) {
  std::filesystem::path directory = dir_.path() / "data", binary = dir_.path() / "millraced";
  std::filesystem::create_directory(directory);
  ::chmod(dir_.path().c_str(), 0755);
  ::chmod(directory.c_str(), 0555);
  auto options = daemon_on(directory);
  std::filesystem::path program = kMillraced;
  if (::geteuid() == 0) {
    // Root may write everywhere: as nobody, with a copy of the program that nobody can reach.
    std::filesystem::copy_file(kMillraced, binary);
    std::vector<std::string> arguments{"--reuid=65534", "--regid=65534", "--clear-groups", binary.string()};
    arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
    options.arguments = std::move(arguments);
    program = "/usr/bin/setpriv";
  }
  Process process(program, options);
  EXPECT_EQ(process.wait(), exited(74)) << process.err();
  EXPECT_THAT(process.err(), HasSubstr(directory.string()));
  EXPECT_THAT(process.err(), HasSubstr("Permission denied"));
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  ::chmod(directory.c_str(), 0755);
}

TEST_F(BadInput, ADataDirectoryOfANewerFormatIsLeftAlone) {
  start();
  EXPECT_EQ(daemon_->stop(), exited(0));
  std::ofstream(data() + "/format") << "millrace-format 999\n";
  auto listing = [&] {
    std::map<std::string, std::pair<uintmax_t, std::filesystem::file_time_type>> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data()))
      if (entry.is_regular_file()) files[entry.path()] = {entry.file_size(), entry.last_write_time()};
    return files;
  };
  auto before = listing();
  Process newer(kMillraced, daemon_on(data()));
  auto status = newer.wait();
  ASSERT_TRUE(status);
  EXPECT_NE(status, exited(0));
  EXPECT_THAT(newer.err(), HasSubstr("FORMAT_TOO_NEW"));
  EXPECT_THAT(newer.err(), HasSubstr("has format 999, but this binary knows formats up to"));
  EXPECT_EQ(listing(), before);
}

}  // namespace
}  // namespace millrace::tests
