#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>

#include "tests/integration/millraced.h"
#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What systemd is to a service: the socket that sd_notify speaks to.
class NotifySocket {
 public:
  explicit NotifySocket(const std::filesystem::path& path) : path_(path.string()) {
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~NotifySocket() { ::close(fd_); }

  /// The next message; empty when none came in time.
  std::string next() {
    pollfd readable{fd_, POLLIN, 0};
    constexpr int kPatienceMs = 60'000;
    if (::poll(&readable, 1, kPatienceMs) <= 0) return {};
    std::array<char, 4096> buffer;
    ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    return {buffer.data(), got > 0 ? static_cast<size_t>(got) : 0};
  }
  /// The next message that says `text`; what comes before it is kept in `skipped`.
  std::string next_with(const std::string& text) {
    std::string message;
    while (!(message = next()).empty() && message.find(text) == std::string::npos) skipped += message + "\n";
    return message;
  }
  const std::string& path() const { return path_; }
  std::string skipped;

 private:
  std::string path_;
  int fd_;
};

class DaemonSignals : public testing::Test {
 protected:
  Process::Options options(std::vector<std::string> more = {}) {
    return daemon_on(dir_.path() / "data", std::move(more));
  }
  std::string write_config(const std::string& text) {
    std::ofstream(dir_.path() / "node.properties") << text;
    return (dir_.path() / "node.properties").string();
  }
  TempDir dir_;
};

TEST_F(DaemonSignals, ReadyThenWatchdogThenStopping) {
  NotifySocket notify(dir_.path() / "notify");
  auto with = options();
  with.environment["NOTIFY_SOCKET"] = notify.path();
  with.environment["WATCHDOG_USEC"] = "300000";
  Process process(kMillraced, with);
  EXPECT_THAT(notify.next_with("READY=1"), HasSubstr("STATUS=ready"));
  EXPECT_THAT(notify.skipped, Not(HasSubstr("WATCHDOG=1"))) << "not before it is ready";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(notify.next_with("WATCHDOG=1"), "WATCHDOG=1");
  process.send(SIGTERM);
  EXPECT_THAT(notify.next_with("STOPPING=1"), HasSubstr("STATUS=stopping"));
  EXPECT_EQ(process.wait(), exited(0));
}

TEST_F(DaemonSignals, AWatchdogMeantForAnotherProcessIsNotFed) {
  NotifySocket notify(dir_.path() / "notify");
  auto with = options({"--set", "node.loopStuckAfter=100ms"});
  with.environment["NOTIFY_SOCKET"] = notify.path();
  Process process(kMillraced, with);
  EXPECT_NE(notify.next_with("READY=1"), "");
  EXPECT_EQ(process.stop(), exited(0));
}

TEST_F(DaemonSignals, AFailedStartSaysWhyAndIsNeverReady) {
  NotifySocket notify(dir_.path() / "notify");
  auto with = daemon_on(write_config("") + "/data");
  with.environment["NOTIFY_SOCKET"] = notify.path();
  Process process(kMillraced, with);
  EXPECT_THAT(notify.next_with("STATUS=cannot start"), HasSubstr("Not a directory"));
  EXPECT_THAT(notify.skipped, Not(HasSubstr("READY=1")));
  EXPECT_EQ(process.wait(), exited(74));
}

TEST_F(DaemonSignals, SigtermAndSigintStopInOrder) {
  for (int signal : {SIGTERM, SIGINT}) {
    Process process(kMillraced, options());
    ASSERT_TRUE(process.wait_for_err("ready"));
    process.send(signal);
    EXPECT_EQ(process.wait(), exited(0));
    EXPECT_THAT(process.err(), AllOf(HasSubstr("stopping in order"), HasSubstr("stopped in")));
  }
}

TEST_F(DaemonSignals, SigpipeIsIgnored) {
  Process process(kMillraced, options());
  ASSERT_TRUE(process.wait_for_err("ready"));
  process.send(SIGPIPE);
  EXPECT_EQ(process.stop(), exited(0));
}

TEST_F(DaemonSignals, ReloadAppliesTheLogLevelAndNamesWhatNeedsARestart) {
  NotifySocket notify(dir_.path() / "notify");
  std::string file = write_config("[node]\nlogLevel = info\n");
  auto with = options({"--config", file, "--set", "http.maxHeaderSize=16KB"});
  with.environment["NOTIFY_SOCKET"] = notify.path();
  Process process(kMillraced, with);
  EXPECT_NE(notify.next_with("READY=1"), "");
  write_config("[node]\nlogLevel = debug\n[http]\nioThreads = 3\n");
  process.send(SIGHUP);
  EXPECT_THAT(notify.next_with("RELOADING=1"), HasSubstr("MONOTONIC_USEC="));
  EXPECT_THAT(notify.next_with("READY=1"), HasSubstr("STATUS=ready"));
  EXPECT_TRUE(process.wait_for_err("reload: applied 1, to be applied by a restart 1"));
  EXPECT_THAT(process.err(), AllOf(HasSubstr("reload: node.logLevel is now 'debug' (was 'info')"),
                                   HasSubstr("reload: http.ioThreads stays '2'; '3' needs a restart"),
                                   Not(HasSubstr("maxHeaderSize"))));
  EXPECT_EQ(process.stop(), exited(0));
}

TEST_F(DaemonSignals, AReloadWithAFaultChangesNothing) {
  NotifySocket notify(dir_.path() / "notify");
  std::string file = write_config("[node]\nlogLevel = info\n");
  auto with = options({"--config", file});
  with.environment["NOTIFY_SOCKET"] = notify.path();
  Process process(kMillraced, with);
  EXPECT_NE(notify.next_with("READY=1"), "");
  write_config("[node]\nlogLevel = error\nlogLevl = error\n");
  process.send(SIGHUP);
  EXPECT_THAT(notify.next_with("READY=1"), HasSubstr("the last reload was refused"));
  EXPECT_TRUE(process.wait_for_err("nothing was changed"));
  EXPECT_THAT(process.err(), HasSubstr("node.properties:3: [node] logLevl: unknown key"));
  // Still at info: the stop is logged.
  EXPECT_EQ(process.stop(), exited(0));
  EXPECT_THAT(process.err(), HasSubstr("stopping in order"));
}

TEST_F(DaemonSignals, AReloadToAQuieterLevelIsQuiet) {
  NotifySocket notify(dir_.path() / "notify");
  std::string file = write_config("");
  auto with = options({"--config", file});
  with.environment["NOTIFY_SOCKET"] = notify.path();
  Process process(kMillraced, with);
  EXPECT_NE(notify.next_with("READY=1"), "");
  write_config("[node]\nlogLevel = error\n");
  process.send(SIGHUP);
  EXPECT_NE(notify.next_with("READY=1"), "");
  EXPECT_EQ(process.stop(), exited(0));
  EXPECT_THAT(process.err(), Not(HasSubstr("stopping in order")));
}

}  // namespace
}  // namespace millrace::tests
