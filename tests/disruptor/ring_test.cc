#include "disruptor/ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace millrace::disruptor {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 60;
/// Sleeps at once, so that a lost wake-up hangs rather than being papered over by a spin.
constexpr WaitPolicy kEager{.spins = 1, .yields = 0};

class RingByProducers : public testing::TestWithParam<Producers> {};
INSTANTIATE_TEST_SUITE_P(Kinds, RingByProducers, testing::Values(Producers::kSingle, Producers::kMulti),
                         [](const auto& kind) { return kind.param == Producers::kSingle ? "Single" : "Multi"; });

TEST_P(RingByProducers, IsEmptyAtFirst) {
  Ring<int> ring(4, GetParam());
  Barrier done;
  ring.gate_on(done);
  EXPECT_EQ(ring.slot_count(), 4u);
  EXPECT_EQ(ring.claimed(), 0);
  EXPECT_EQ(ring.highest_published(0, kNoLimit), 0);
  EXPECT_FALSE(ring.is_published(0));
}

TEST_P(RingByProducers, PublishesWhatIsClaimedUpToTheLimitAsked) {
  Ring<int> ring(8, GetParam());
  Barrier done;
  ring.gate_on(done);
  EXPECT_EQ(ring.try_claim(3), 0);
  EXPECT_EQ(ring.highest_published(0, kNoLimit), 0);
  ring.publish(0, 3);
  EXPECT_EQ(ring.try_claim(2), 3);
  ring.publish(3, 2);
  EXPECT_EQ(ring.highest_published(0, kNoLimit), 5);
  EXPECT_EQ(ring.highest_published(0, 2), 2);
  EXPECT_EQ(ring.highest_published(4, kNoLimit), 5);
  EXPECT_EQ(ring.highest_published(5, kNoLimit), 5);
}

TEST_P(RingByProducers, IsFullUntilTheSlowestGateMoves) {
  for (size_t slots : {1, 2, 4}) {
    Ring<int> ring(slots, GetParam());
    Barrier fast, slow;
    ring.gate_on(fast);
    ring.gate_on(slow);
    auto n = static_cast<int64_t>(slots);
    EXPECT_EQ(ring.try_claim(n + 1), RingCore::kFull);
    ASSERT_EQ(ring.try_claim(n), 0);
    ring.publish(0, n);
    EXPECT_EQ(ring.try_claim(), RingCore::kFull);
    fast.advance(n);
    EXPECT_EQ(ring.try_claim(), RingCore::kFull);
    slow.advance(1);
    EXPECT_EQ(ring.freed(), 1);
    EXPECT_EQ(ring.try_claim(), n);
    EXPECT_EQ(ring.try_claim(), RingCore::kFull);
  }
}

TEST_P(RingByProducers, GoesAroundManyTimesWhenDrivenByHand) {
  for (size_t slots : {1, 2, 8}) {
    Ring<int64_t> ring(slots, GetParam());
    Barrier done;
    ring.gate_on(done);
    int64_t produced = 0, consumed = 0;
    while (consumed < 1000) {
      for (int64_t at; (at = ring.try_claim()) >= 0; ++produced) {
        ring[at] = at * 7;
        ring.publish(at);
      }
      int64_t end = ring.highest_published(consumed, consumed + 3);
      ASSERT_GT(end, consumed);
      for (; consumed < end; ++consumed) ASSERT_EQ(ring[consumed], consumed * 7);
      done.advance(end);
    }
    EXPECT_EQ(ring.claimed(), produced);
  }
}

TEST_P(RingByProducers, ClosedRefusesClaimsAndStillPublishes) {
  Ring<int> ring(4, GetParam());
  Barrier done;
  ring.gate_on(done);
  ASSERT_EQ(ring.try_claim(), 0);
  EXPECT_FALSE(ring.closed());
  ring.close();
  EXPECT_TRUE(ring.closed());
  EXPECT_EQ(ring.try_claim(), RingCore::kClosed);
  EXPECT_EQ(ring.claim(), RingCore::kClosed);
  EXPECT_EQ(ring.claimed(), 1);
  ring.publish(0);
  EXPECT_EQ(ring.highest_published(0, kNoLimit), 1);
}

TEST(Ring, AGapHoldsUpWhatIsPublishedBehindIt) {
  Ring<int> ring(4, Producers::kMulti);
  Barrier done;
  ring.gate_on(done);
  int64_t first = ring.try_claim(), second = ring.try_claim();
  ring.publish(second);
  EXPECT_EQ(ring.highest_published(0, kNoLimit), 0);
  EXPECT_TRUE(ring.is_published(second));
  ring.publish(first);
  EXPECT_EQ(ring.highest_published(0, kNoLimit), 2);
}

TEST(Ring, CloseReleasesAProducerThatWaits) {
  Ring<int> ring(1, Producers::kMulti);
  Barrier done;
  ring.gate_on(done);
  ASSERT_EQ(ring.try_claim(), 0);
  std::thread producer([&] { EXPECT_EQ(ring.claim(1, kEager), RingCore::kClosed); });
  ring.close();
  producer.join();
}

/// What one producer wrote: its number and how many it had written before.
struct Mark {
  int producer;
  int64_t count;
};

// Producers either wait in claim() or come again when told "full"; the consumer sleeps whenever it can.
void run_producers(size_t slots, int producers, int64_t each, bool waiting) {
  Ring<Mark> ring(slots, producers == 1 ? Producers::kSingle : Producers::kMulti);
  Barrier middle, done;
  ring.gate_on(done);
  Eventcount middle_moved;
  middle.wakes(middle_moved);
  std::vector<std::thread> threads;
  for (int p = 0; p < producers; ++p)
    threads.emplace_back([&, p] {
      for (int64_t i = 0; i < each; ++i) {
        int64_t at = waiting ? ring.claim(1, kEager) : ring.try_claim();
        while (at == RingCore::kFull) {
          std::this_thread::yield();
          at = ring.try_claim();
        }
        ring[at] = {p, i};
        ring.publish(at);
      }
    });
  const int64_t total = producers * each;
  // Level 1 changes each slot without a lock; level 2 checks it.
  threads.emplace_back([&] {
    for (int64_t at = 0; at < total;) {
      auto key = ring.published_event()->key();
      int64_t end = ring.highest_published(at, kNoLimit);
      if (end == at) ring.wait_published(at, key, kEager);
      for (int64_t i = at; i < end; ++i) ring[i].count += 1;
      middle.advance(at = end);
    }
  });
  std::vector<int64_t> seen(static_cast<size_t>(producers), 0);
  for (int64_t at = 0; at < total;) {
    auto key = middle_moved.key();
    int64_t end = middle.get();
    if (end == at) middle_moved.wait(key, kEager, [&] { return middle.get() > at; });
    for (; at < end; ++at) {
      Mark mark = ring[at];
      ASSERT_EQ(mark.count, ++seen[static_cast<size_t>(mark.producer)]) << "at " << at;
    }
    done.advance(at);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ring.claimed(), total);
  EXPECT_EQ(ring.freed(), total);
}

TEST(Ring, OneProducerThatWaits) {
  for (size_t slots : {1, 2, 64}) run_producers(slots, 1, 5'000, true);
}
TEST(Ring, SeveralProducersThatWait) {
  for (size_t slots : {1, 2, 64}) run_producers(slots, 4, 2'000, true);
}
TEST(Ring, SeveralProducersThatNeverBlock) {
  for (size_t slots : {1, 2, 64}) run_producers(slots, 4, 2'000, false);
}

}  // namespace
}  // namespace millrace::disruptor
