#include "daemon/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::daemon {
namespace {

using namespace std::chrono_literals;

class WatchdogTest : public testing::Test {
 protected:
  ManualClock clock_;
  Health health_{clock_};
  int fed_ = 0;
  Watchdog watchdog_{health_, 10s, [this] { ++fed_; }};
};

TEST_F(WatchdogTest, FeedsWhileEveryLoopAnswers) {
  std::shared_ptr<Heartbeat> loop;
  loop = health_.watch("io-0", [&] { loop->beat(); });
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(watchdog_.look());
    clock_.advance(20s);
  }
  EXPECT_EQ(fed_, 5);
}

TEST_F(WatchdogTest, StopsFeedingForOneStuckLoopAndStartsAgainWhenItMoves) {
  std::shared_ptr<Heartbeat> alive;
  alive = health_.watch("io-0", [&] { alive->beat(); });
  auto stuck = health_.watch("commit", [] {});
  EXPECT_TRUE(watchdog_.look());
  clock_.advance(9999ms);
  EXPECT_TRUE(watchdog_.look()) << "slow is not stuck";
  clock_.advance(1ms);
  EXPECT_FALSE(watchdog_.look());
  EXPECT_EQ(watchdog_.stuck(), "commit (10 s)");
  clock_.advance(3s);
  EXPECT_FALSE(watchdog_.look());
  EXPECT_EQ(watchdog_.stuck(), "commit (13 s)");
  EXPECT_EQ(fed_, 2);
  stuck->beat();
  EXPECT_TRUE(watchdog_.look());
  EXPECT_EQ(watchdog_.stuck(), "");
  EXPECT_EQ(fed_, 3);
}

TEST_F(WatchdogTest, ALoopThatEndedIsNotMissed) {
  auto loop = health_.watch("io-0", [] {});
  EXPECT_TRUE(watchdog_.look());
  clock_.advance(1min);
  loop.reset();
  EXPECT_TRUE(watchdog_.look());
}

TEST_F(WatchdogTest, LooksOftenEnoughForBothClocks) {
  EXPECT_EQ(Watchdog::interval(10s, std::nullopt), 2500ms);
  EXPECT_EQ(Watchdog::interval(10s, 30s), 2500ms);
  EXPECT_EQ(Watchdog::interval(10s, 3s), 1s);
  EXPECT_EQ(Watchdog::interval(100ms, 1ms), 1ms);
}

}  // namespace
}  // namespace millrace::daemon
