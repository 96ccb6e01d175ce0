#include "disruptor/wait_strategy.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace millrace::disruptor {
namespace {

constexpr WaitPolicy kSleepAtOnce{.spins = 0, .yields = 0};

TEST(Eventcount, ReadyReturnsWithoutWaiting) {
  Eventcount event;
  EXPECT_TRUE(event.wait(event.key(), kSleepAtOnce, [] { return true; }));
}

TEST(Eventcount, InterruptBeforeTheWaitIsNotLost) {
  for (const WaitPolicy& policy : {kSleepAtOnce, WaitPolicy{}}) {
    Eventcount event;
    auto key = event.key();
    event.interrupt();
    EXPECT_FALSE(event.wait(key, policy, [] { return false; }));
  }
}

TEST(Eventcount, InterruptWakesASleeper) {
  Eventcount event;
  std::atomic<int> turns{0};
  std::atomic<bool> stop{false};
  std::thread sleeper([&] {
    for (;;) {
      auto key = event.key();
      turns.fetch_add(1);
      if (stop.load()) return;
      event.wait(key, kSleepAtOnce, [] { return false; });
    }
  });
  // Each interrupt is answered by at least one more turn, whether it meets the thread asleep, about to be, or awake.
  for (int i = 0; i < 200; ++i) {
    int before = turns.load();
    event.interrupt();
    while (turns.load() == before) std::this_thread::yield();
  }
  stop.store(true);
  event.interrupt();
  sleeper.join();
}

// Two threads hand a number to and fro, each sleeping as soon as it can: one lost wake-up hangs the test.
void ping_pong(const WaitPolicy& policy, int rounds, bool use_membarrier) {
  Eventcount to_peer(use_membarrier), to_us(use_membarrier);
  std::atomic<int> ball{0};
  auto await = [&](Eventcount& event, int value) {
    for (;;) {
      auto key = event.key();
      if (ball.load(std::memory_order_acquire) == value) return;
      event.wait(key, policy, [&] { return ball.load(std::memory_order_acquire) == value; });
    }
  };
  std::thread peer([&] {
    for (int i = 0; i < rounds; ++i) {
      await(to_peer, 2 * i + 1);
      ball.store(2 * i + 2, std::memory_order_release);
      to_us.notify();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ball.store(2 * i + 1, std::memory_order_release);
    to_peer.notify();
    await(to_us, 2 * i + 2);
  }
  peer.join();
  EXPECT_EQ(ball.load(), 2 * rounds);
}

class EventcountByBarrier : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EventcountByBarrier, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "BySleeper" : "ByNotifier"; });

TEST_P(EventcountByBarrier, LosesNoWakeUpWhenSleepingAtOnce) {
  ping_pong(kSleepAtOnce, 20'000, GetParam());
}
TEST_P(EventcountByBarrier, LosesNoWakeUpWhenWaitingShortly) {
  ping_pong({.spins = 1, .pauses = 4, .yields = 1}, 20'000, GetParam());
}
TEST_P(EventcountByBarrier, LosesNoWakeUpWithTheDefaults) {
  ping_pong({}, 20'000, GetParam());
}

TEST(Eventcount, OneNotifyWakesEverySleeper) {
  Eventcount event;
  std::atomic<bool> go{false};
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 4; ++i)
    sleepers.emplace_back([&] {
      while (!go.load(std::memory_order_acquire)) {
        auto key = event.key();
        event.wait(key, kSleepAtOnce, [&] { return go.load(std::memory_order_acquire); });
      }
    });
  go.store(true, std::memory_order_release);
  event.notify();
  for (auto& thread : sleepers) thread.join();
}

TEST(OneShot, SetBeforeTheWaitIsNotLost) {
  OneShot shot;
  EXPECT_FALSE(shot.is_set());
  shot.set();
  EXPECT_TRUE(shot.is_set());
  shot.wait();
}

TEST(OneShot, MayGoAsSoonAsItWasWaitedFor) {
  for (int round = 0; round < 2'000; ++round) {
    auto shot = std::make_unique<OneShot>();
    int seen = 0, value = 0;
    std::thread waiter([&] {
      shot->wait();
      seen = value;
    });
    value = round;
    shot->set();
    waiter.join();
    ASSERT_EQ(seen, round);
  }
}

}  // namespace
}  // namespace millrace::disruptor
