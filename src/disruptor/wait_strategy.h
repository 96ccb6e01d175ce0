#pragma once

#include <atomic>
#include <cstdint>

#include "disruptor/sequence.h"

namespace millrace::disruptor {

/// A hint to the core that it is in a loop that waits.
inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("" ::: "memory");
#endif
}

/// Lets another thread that is ready to run have this core.
void yield_core();

/// How a thread waits for a position to move: it spins shortly (the answer is often on its way), then yields (on few
/// cores the one to wait for needs this very core), then sleeps on a futex until notified. It never polls by sleeping.
struct WaitPolicy {
  /// Looks while spinning, and pauses of the core before each. Looking rarely is what makes batches: each look takes a
  /// cache line from the core that writes it, and a reader hard on its writer's heels makes both wait for that line.
  uint32_t spins = 2;
  uint32_t pauses = 32;
  /// After a batch of fewer elements than this a consumer yields once before it looks again, see let_batch_grow().
  int64_t small_batch = 64;
  /// Looks with a sched_yield before each.
  uint32_t yields = 50;
  /// False: go on yielding for ever; for measurements only, as it takes a whole core while idle.
  bool sleep = true;
};

/// For consumer loops, after a batch of `taken` elements: a small one means that the consumer is hard on the heels of
/// its writer, and the two take turns at the same cache lines for every element. Letting another thread have the core
/// (the writer, if there are few cores) makes the next batch a large one. Measured with four threads on two cores: half
/// as much again of a pipeline's throughput, and no more slow stretches.
inline void let_batch_grow(int64_t taken, const WaitPolicy& policy) {
  if (taken < policy.small_batch) yield_core();
}

/// Wakes threads that wait for something which others write elsewhere (a Sequence, a flag). No wake-up is lost, and
/// notify() costs one load and no fence while nobody sleeps: the thread about to sleep pays, by making every running
/// thread of the process pass a barrier (membarrier(2)). Where the kernel lacks that, notify() pays with a
/// read-modify-write.
///
/// The waiter's loop, which must tolerate spurious returns:
///     auto key = event.key();
///     ... take a turn ...
///     event.wait(key, policy, [&] { return there_is_something(); });
///
/// Any thread may call anything.
class alignas(kCacheLinePair) Eventcount {
 public:
  using Key = uint32_t;

  /// Tests pass false to have what a kernel without membarrier(2) gets.
  explicit Eventcount(bool use_membarrier = true);
  Eventcount(const Eventcount&) = delete;
  Eventcount& operator=(const Eventcount&) = delete;

  /// Taken before looking: whatever is notified to a sleeper or interrupted after this ends a wait() with this key.
  Key key() const { return state_.load(std::memory_order_acquire) & ~kSleeping; }

  /// Call after the store that makes a waiter's `ready` true.
  void notify() {
    // The compiler must not move the load before the caller's store; the processor is held by the sleeper's barrier.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    uint32_t state =
        barrier_by_sleeper_ ? state_.load(std::memory_order_relaxed) : state_.fetch_add(0, std::memory_order_acq_rel);
    if (state & kSleeping) [[unlikely]]
      wake();
  }

  /// Makes every wait() whose key was taken before this return, ready or not: for nudges and stop flags.
  void interrupt();

  /// Returns true as soon as `ready()` is, false when interrupted or woken for nothing. `ready` must be cheap and
  /// must read what it reads with acquire.
  template <typename Ready>
  bool wait(Key key, const WaitPolicy& policy, Ready&& ready) {
    // The caller has just looked, so each phase waits before it looks.
    for (uint32_t i = 0; i < policy.spins; ++i) {
      for (uint32_t k = 0; k < policy.pauses; ++k) pause_core();
      if (ready()) return true;
    }
    for (uint32_t i = 0; i < policy.yields || !policy.sleep; ++i) {
      yield_core();
      if (ready()) return true;
      if (this->key() != key) return false;
    }
    if (!announce_sleep(key)) return false;
    if (ready()) return true;
    sleep(key);
    return ready();
  }

 private:
  // Bit 0: somebody sleeps or is about to. The rest counts the wake-ups, so that a late sleeper notices one.
  static constexpr uint32_t kSleeping = 1;
  static constexpr uint32_t kOneWake = 2;

  /// False when a wake-up came since `key` was taken.
  bool announce_sleep(Key key);
  void sleep(Key key);
  void wake();

  std::atomic<uint32_t> state_{0};
  const bool barrier_by_sleeper_;
};

/// Set once by one thread, waited for by one other, which sleeps at once: for waits that outlast any spinning. May be
/// destroyed as soon as wait() has returned, while set() has not: what set() still does then touches the address only.
class OneShot {
 public:
  void set() {
    if (state_.exchange(kSet, std::memory_order_acq_rel) == kSleeping) wake();
  }
  bool is_set() const { return state_.load(std::memory_order_acquire) == kSet; }
  void wait();

 private:
  static constexpr uint32_t kUnset = 0, kSleeping = 1, kSet = 2;
  void wake();

  std::atomic<uint32_t> state_{kUnset};
};

}  // namespace millrace::disruptor
