#include "tests/support/process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <system_error>

#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

using namespace std::chrono_literals;

Process::Options shell(std::string script) {
  Process::Options options;
  options.arguments = {"-c", std::move(script)};
  return options;
}

TEST(Process, CapturesBothStreamsAndTheExitCode) {
  Process process("/bin/sh", shell("echo out; echo err >&2; exit 7"));
  EXPECT_EQ(process.wait(), exited(7));
  EXPECT_EQ(process.out(), "out\n");
  EXPECT_EQ(process.err(), "err\n");
  EXPECT_FALSE(process.running());
  EXPECT_FALSE(process.send(SIGTERM));
}

TEST(Process, GivesInputEnvironmentDirectoryAndLimits) {
  TempDir dir;
  auto options = shell("cat; echo \"$A-${HOME-unset}\"; pwd; ulimit -n");
  options.input = "typed\n";
  options.environment = {{"A", "b"}, {"HOME", std::nullopt}};
  options.working_directory = dir.path();
  options.limits = {{RLIMIT_NOFILE, 33}};
  Process process("/bin/sh", options);
  EXPECT_EQ(process.wait(), exited(0));
  EXPECT_EQ(process.out(), "typed\nb-unset\n" + dir.path().string() + "\n33\n");
}

TEST(Process, TakesMoreOutputThanAPipeHolds) {
  Process process("/bin/sh", shell("head -c 1000000 /dev/zero"));
  EXPECT_EQ(process.wait(), exited(0));
  EXPECT_EQ(process.out().size(), 1'000'000u);
}

TEST(Process, SaysWhichSignalEndedIt) {
  Process process("/bin/sh", shell("echo up >&2; exec sleep 600"));
  ASSERT_TRUE(process.wait_for_err("up\n"));
  EXPECT_TRUE(process.running());
  EXPECT_EQ(process.wait(1ms), std::nullopt);
  EXPECT_TRUE(process.send(SIGUSR1));
  EXPECT_EQ(process.wait(), killed_by(SIGUSR1));
  EXPECT_EQ(to_string(killed_by(SIGKILL)), "signal 9 (Killed)");
}

TEST(Process, StopKillsWhatIgnoresSigterm) {
  Process process("/bin/sh", shell("trap '' TERM; echo up >&2; while :; do read x; done </dev/zero"));
  ASSERT_TRUE(process.wait_for_err("up\n"));
  EXPECT_EQ(process.stop(50ms), killed_by(SIGKILL));
}

TEST(Process, TakesItsChildrenAlong) {
  pid_t child = 0;
  {
    Process process("/bin/sh", shell("sleep 600 & echo $! >&2; wait"));
    ASSERT_TRUE(process.wait_for_err("\n"));
    child = std::stoi(process.err());
    EXPECT_EQ(::kill(child, 0), 0);
  }
  // Orphaned and killed; init may not have reaped it yet, but it no longer runs.
  Process state("/bin/sh", shell("for i in 1 2 3 4 5; do grep -q '^State:.*Z' /proc/" + std::to_string(child) +
                                 "/status 2>/dev/null || ! test -e /proc/" + std::to_string(child) +
                                 " && exit 0; sleep 0.1; done; exit 1"));
  EXPECT_EQ(state.wait(), exited(0));
}

TEST(Process, AProgramThatIsNotThereThrows) {
  EXPECT_THROW(Process("/nonexistent/program", Process::Options{}), std::system_error);
}

TEST(Process, WaitingForTextEndsWithTheProcess) {
  Process process("/bin/sh", shell("echo something >&2"));
  EXPECT_FALSE(process.wait_for_err("else"));
}

TEST(Process, FindsThePortInAWholeLineOnly) {
  for (const char* line :
       {"x listening on 127.0.0.1:8080", "listening on http://[::1]:8080/", "\\\"listening on 127.0.0.1:8080\\\"}"}) {
    Process process("/bin/sh", shell(std::string("echo 'listening on /tmp/socket' >&2; echo \"") + line + "\" >&2"));
    EXPECT_EQ(process.wait_for_port(), 8080) << line;
  }
  Process process("/bin/sh", shell("printf 'listening on 127.0.0.1:80' >&2"));
  EXPECT_EQ(process.wait_for_port(), std::nullopt);
}

}  // namespace
}  // namespace millrace::tests
