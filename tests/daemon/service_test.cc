#include "daemon/service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <stdexcept>
#include <thread>

#include "daemon/logging.h"

// Each test is a process that runs a Service over a node of its own and ends as the daemon would.
namespace millrace::daemon {
namespace {

using namespace std::chrono_literals;

/// Signals are blocked everywhere and read by the main thread, so it does not matter who sends them.
void signal_self(int signal) {
  ::kill(::getpid(), signal);
}

[[noreturn]] void never_return() {
  std::promise<void>().get_future().wait_for(1h);
  std::abort();
}

struct FakeNode final : Node {
  std::function<void()> on_stop = [] {};
  std::function<void()> on_reload = [] {};
  void stop() override { on_stop(); }
  void reload(const config::Config&) override { on_reload(); }
};

/// What the process ends with: `at_start` stands for everything that Node::start does.
[[noreturn]] void run_service(std::function<Result<std::unique_ptr<Node>>(Health&, Node::OnFatal)> at_start,
                              std::chrono::milliseconds shutdown_timeout = 60s) {
  config::Sources sources;
  sources.environment.home = "/nonexistent";
  auto loaded = config::load(sources);
  loaded->config.node.shutdown_timeout = shutdown_timeout;
  loaded->config.node.loop_stuck_after = 100ms;
  loaded->config.node.log_level = config::LogLevel::kDebug;
  set_up_logging(loaded->config.node.log_format, loaded->config.node.log_level);
  Service service(*loaded, sources, [&](const config::Config&, Health& health, Node::OnFatal on_fatal) {
    return at_start(health, std::move(on_fatal));
  });
  std::exit(service.run());
}

class ServiceDeathTest : public testing::Test {
 protected:
  // The child starts anew instead of continuing a copy of this process.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ServiceDeathTest, ASignalDuringTheStartStopsInOrderAfterIt) {
  EXPECT_EXIT(run_service([](Health&, Node::OnFatal) {
                signal_self(SIGTERM);
                return std::make_unique<FakeNode>();
              }),
              testing::ExitedWithCode(kExitOk), "stopping in order(.|\n)*stopped in");
}

TEST_F(ServiceDeathTest, ASecondSignalEndsAtOnceAndAsThatSignalDoes) {
  auto stuck_in_stop = [](Health&, Node::OnFatal) {
    auto node = std::make_unique<FakeNode>();
    node->on_stop = [] {
      signal_self(SIGINT);
      never_return();
    };
    signal_self(SIGTERM);
    return node;
  };
  EXPECT_EXIT(run_service(stuck_in_stop), testing::KilledBySignal(SIGINT), "second SIGINT: ending at once");
}

TEST_F(ServiceDeathTest, AStopThatHangsEndsWithTheTimeoutAndNamesTheLoops) {
  std::shared_ptr<Heartbeat> loop;
  auto hangs = [&](Health& health, Node::OnFatal) {
    loop = health.watch("commit", [] {});
    health.check();
    auto node = std::make_unique<FakeNode>();
    node->on_stop = [] { never_return(); };
    signal_self(SIGTERM);
    return node;
  };
  EXPECT_EXIT(run_service(hangs, 50ms), testing::ExitedWithCode(kExitInternal),
              "not stopped within node.shutdownTimeout \\(50 ms\\).* commit");
}

TEST_F(ServiceDeathTest, AStartThatFailsEndsWithTheCodeOfItsError) {
  auto refuses = [](Health&, Node::OnFatal) -> Result<std::unique_ptr<Node>> {
    return fail(ErrorKind::kUnsupported, "FORMAT_TOO_NEW", "the data directory is of format 9");
  };
  EXPECT_EXIT(run_service(refuses), testing::ExitedWithCode(kExitConfig), "cannot start: FORMAT_TOO_NEW: the data");
}

TEST_F(ServiceDeathTest, AFatalErrorStopsInOrderAndEndsWithItsCode) {
  auto fails_later = [](Health&, Node::OnFatal on_fatal) {
    std::thread([on_fatal] {
      on_fatal(Error{ErrorKind::kUnknown, "STORE_UNKNOWN", "the disk said EIO"});
      on_fatal(Error{ErrorKind::kInternal, "SECOND", "does not count"});
    }).join();
    return std::make_unique<FakeNode>();
  };
  EXPECT_EXIT(run_service(fails_later), testing::ExitedWithCode(kExitIo),
              "cannot go on: STORE_UNKNOWN(.|\n)*stopped in");
}

TEST_F(ServiceDeathTest, AFatalErrorDuringTheStopIsNoCleanEnd) {
  auto fails_to_flush = [](Health&, Node::OnFatal on_fatal) {
    auto node = std::make_unique<FakeNode>();
    node->on_stop = [on_fatal] { on_fatal(Error{ErrorKind::kIo, "FILE_IO", "the disk said EIO"}); };
    signal_self(SIGTERM);
    return node;
  };
  EXPECT_EXIT(run_service(fails_to_flush), testing::ExitedWithCode(kExitIo), "cannot go on: FILE_IO");
}

TEST_F(ServiceDeathTest, AnExceptionFromTheStartComesOutOfRun) {
  auto throws = [](Health&, Node::OnFatal) -> Result<std::unique_ptr<Node>> {
    throw std::runtime_error("from a library");
  };
  EXPECT_EXIT(
      {
        try {
          run_service(throws);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "caught: %s\n", error.what());
          std::exit(kExitInternal);
        }
      },
      testing::ExitedWithCode(kExitInternal), "caught: from a library");
}

TEST_F(ServiceDeathTest, AReloadDuringTheStartIsMadeUpForAfterIt) {
  // The configuration of these tests differs from what its sources say, so there is something to apply.
  auto starts = [](Health&, Node::OnFatal) {
    auto node = std::make_unique<FakeNode>();
    node->on_reload = [] { signal_self(SIGTERM); };
    signal_self(SIGHUP);
    return node;
  };
  EXPECT_EXIT(run_service(starts), testing::ExitedWithCode(kExitOk),
              "ready(.|\n)*reload: node.logLevel is now 'info'(.|\n)*stopped in");
}

TEST_F(ServiceDeathTest, AStuckLoopIsReportedWhileItRuns) {
  std::shared_ptr<Heartbeat> loop;
  auto starts = [&](Health& health, Node::OnFatal) {
    loop = health.watch("commit", [] {});
    // This one answers, and so counts the looks: they are 25 ms apart, so by the twelfth the other is stuck for long.
    static std::shared_ptr<Heartbeat> other;
    other = health.watch("counter", [nudges = 0]() mutable {
      other->beat();
      if (++nudges == 12) signal_self(SIGTERM);
    });
    return std::make_unique<FakeNode>();
  };
  EXPECT_EXIT(run_service(starts), testing::ExitedWithCode(kExitOk), "loop commit has made no progress");
}

}  // namespace
}  // namespace millrace::daemon
