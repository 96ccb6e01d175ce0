#include "base/timer_thread.h"

#include <gtest/gtest.h>

#include <future>

namespace millrace {
namespace {

TEST(TimerThread, RunsATaskWhenItIsDueAndAsItSays) {
  Health health(SystemClock::instance());
  TimerThread timer(SystemClock::instance(), health);
  std::promise<void> third;
  int runs = 0;
  timer.add(
      [&]() -> int64_t {
        if (++runs == 3) third.set_value();
        return runs < 3 ? 0 : TimerThread::kNever;
      },
      0);
  timer.start();
  third.get_future().wait();
  timer.stop();
  EXPECT_EQ(runs, 3);
}

TEST(TimerThread, ATaskCanBeAskedForEarlier) {
  Health health(SystemClock::instance());
  TimerThread timer(SystemClock::instance(), health);
  std::promise<void> ran;
  auto task = timer.add(
      [&]() -> int64_t {
        ran.set_value();
        return TimerThread::kNever;
      },
      TimerThread::kNever);
  timer.start();
  timer.run_by(task, 0);
  ran.get_future().wait();
}

}  // namespace
}  // namespace millrace
