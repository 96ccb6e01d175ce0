#include "bus/watches.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace millrace::bus {
namespace {

const TopicPartition kHere{Uuid{}, 1}, kThere{Uuid{}, 2};

TEST(Watches, WakeOnlyWhenThePositionIsPassedAndOnlyOnce) {
  Watches watches(10);
  int wakes = 0;
  auto watch = watches.add({{kHere, 5}, {kThere, 5}}, [&] { ++wakes; });
  ASSERT_TRUE(watch);
  watches.moved({{kHere, 5}, {kThere, 3}});
  EXPECT_EQ(wakes, 0) << "position 5 is passed when the record at 5 is there";
  watches.moved({{kHere, 6}, {kThere, 9}});
  EXPECT_EQ(wakes, 1);
  watches.moved({{kHere, std::nullopt}, {kThere, std::nullopt}});
  EXPECT_EQ(wakes, 1);
}

TEST(Watches, APartitionThatGoesWakes) {
  Watches watches(10);
  int wakes = 0;
  auto watch = watches.add({{kHere, 5}}, [&] { ++wakes; });
  watches.moved({{kHere, std::nullopt}});
  EXPECT_EQ(wakes, 1);
}

TEST(Watches, EachPartitionCountsUntilTheWatchIsDropped) {
  Watches watches(3);
  auto two = watches.add({{kHere, 0}, {kThere, 0}}, [] {});
  EXPECT_EQ(watches.add({{kHere, 0}, {kThere, 0}}, [] { FAIL(); }).error().code, "TOO_MANY_WATCHES");
  EXPECT_EQ(watches.count(), 2u) << "a refused watch leaves nothing behind";
  watches.moved({{kHere, 1}});
  EXPECT_EQ(watches.count(), 2u);
  two->reset();
  EXPECT_EQ(watches.count(), 0u);
  watches.moved({{kThere, 1}});
}

TEST(Watches, AWatchMayBeDroppedByItsOwnWaking) {
  Watches watches(10);
  auto owner = std::make_shared<std::unique_ptr<Watch>>();
  int wakes = 0;
  *owner = *watches.add({{kHere, 0}, {kThere, 0}}, [&wakes, owner] {
    ++wakes;
    owner->reset();
  });
  std::weak_ptr<std::unique_ptr<Watch>> kept = owner;
  owner.reset();
  watches.moved({{kHere, 1}, {kThere, 1}});
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(watches.count(), 0u);
  EXPECT_TRUE(kept.expired()) << "what the wake-up captured is freed";
}

TEST(Watches, AWatchDroppedWhileItWakesWaitsForNobody) {
  Watches watches(10);
  std::promise<void> waking, dropped;
  auto watch = watches.add({{kHere, 0}}, [&] {
    waking.set_value();
    dropped.get_future().wait();
  });
  std::thread mover([&] { watches.moved({{kHere, 1}}); });
  waking.get_future().wait();
  watch->reset();
  dropped.set_value();
  mover.join();
  EXPECT_EQ(watches.count(), 0u);
}

TEST(Watches, OutlivedByAHandle) {
  std::unique_ptr<Watch> watch;
  {
    Watches watches(10);
    watch = *watches.add({{kHere, 0}}, [] { FAIL(); });
  }
  watch.reset();
}

TEST(Watches, ManyThreadsAddDropAndWake) {
  Watches watches(1000);
  std::atomic<bool> stop{false};
  std::thread mover([&] {
    for (uint64_t at = 1; !stop.load(); ++at) watches.moved({{kHere, at}, {kThere, std::nullopt}});
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        auto wakes = std::make_shared<std::atomic<int>>(0);
        auto watch = watches.add({{kHere, 0}, {kThere, 0}}, [wakes] { ++*wakes; });
        ASSERT_TRUE(watch);
        if (i % 2 == 0) Watches::wake_now(**watch);
        watch->reset();
        EXPECT_LE(wakes->load(), 1);
      }
    });
  for (auto& thread : threads) thread.join();
  stop = true;
  mover.join();
  EXPECT_EQ(watches.count(), 0u);
}

}  // namespace
}  // namespace millrace::bus
