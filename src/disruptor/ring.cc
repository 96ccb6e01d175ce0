#include "disruptor/ring.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/result.h"

namespace millrace::disruptor {
namespace {

// After losing a claim to another core: pauses before the next try, doubled each time. Measured with three producers
// on two cores: nearly twice the claims, and bounded to a few microseconds.
constexpr uint32_t kFirstBackoff = 16;
constexpr uint32_t kLongestBackoff = 64;

}  // namespace

RingCore::RingCore(size_t slot_count, Producers producers)
    : slot_count_(static_cast<int64_t>(slot_count)),
      mask_(slot_count_ - 1),
      shift_(std::countr_zero(slot_count)),
      producers_(producers) {
  MILLRACE_ASSERT(std::has_single_bit(slot_count), "a ring's slot count is a power of two");
  if (producers == Producers::kSingle) return;
  rounds_ = std::make_unique<std::atomic<uint32_t>[]>(slot_count);
  // The round before round 0.
  for (size_t i = 0; i < slot_count; ++i) rounds_[i].store(~uint32_t{0}, std::memory_order_relaxed);
}

void RingCore::gate_on(Barrier& gate) {
  gate.wakes(space_event_);
  gates_.push_back(&gate);
}

int64_t RingCore::freed() const {
  int64_t slowest = gates_.empty() ? 0 : std::numeric_limits<int64_t>::max();
  for (const Barrier* gate : gates_) slowest = std::min(slowest, gate->get());
  return slowest;
}

bool RingCore::has_room(int64_t first, int64_t n) {
  // Acquire: who claims because of a position that another producer saw must also see that the slot was left.
  if (first + n - freed_seen_.load(std::memory_order_acquire) <= slot_count_) return true;
  int64_t freed_now = freed();
  // Several producers may store here, and an older value may come last; that only costs another look.
  freed_seen_.store(freed_now, std::memory_order_release);
  return first + n - freed_now <= slot_count_;
}

int64_t RingCore::try_claim_single(int64_t n) {
  int64_t first = claimed_.load(std::memory_order_relaxed);
  if (first & kClosedBit) [[unlikely]]
    return kClosed;
  if (!has_room(first, n)) return kFull;
  claimed_.store(first + n, std::memory_order_release);
  return first;
}

int64_t RingCore::try_claim_multi(int64_t n) {
  int64_t first = claimed_.load(std::memory_order_relaxed);
  for (uint32_t pauses = kFirstBackoff;; pauses = std::min(2 * pauses, kLongestBackoff)) {
    if (first & kClosedBit) [[unlikely]]
      return kClosed;
    if (!has_room(first, n)) return kFull;
    if (claimed_.compare_exchange_weak(first, first + n, std::memory_order_acq_rel, std::memory_order_relaxed))
      return first;
    // Another core has the line. Let it claim a streak before the line, and those of its slots, move again.
    for (uint32_t i = 0; i < pauses; ++i) pause_core();
    first = claimed_.load(std::memory_order_relaxed);
  }
}

int64_t RingCore::claim(int64_t n, const WaitPolicy& policy) {
  MILLRACE_ASSERT(n <= slot_count_, "more positions claimed at once than the ring has slots");
  for (;;) {
    auto key = space_event_.key();
    int64_t first = try_claim(n);
    if (first != kFull) return first;
    space_event_.wait(key, policy, [&] {
      int64_t claimed = claimed_.load(std::memory_order_acquire);
      return (claimed & kClosedBit) != 0 || claimed + n - freed() <= slot_count_;
    });
  }
}

void RingCore::wait_freed(int64_t position, const WaitPolicy& policy) {
  for (;;) {
    auto key = space_event_.key();
    if (freed() >= position || space_event_.wait(key, policy, [&] { return freed() >= position; })) return;
  }
}

void RingCore::close() {
  claimed_.fetch_or(kClosedBit, std::memory_order_acq_rel);
  space_event_.interrupt();
}

}  // namespace millrace::disruptor
