#include "disruptor/wait_strategy.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "base/result.h"

namespace millrace::disruptor {
namespace {

long membarrier(int command) {
  return ::syscall(SYS_membarrier, command, 0, 0);
}

/// Once per process: whether a thread can make all the others pass a memory barrier.
bool register_membarrier() {
  static const bool registered = [] {
    long supported = membarrier(MEMBARRIER_CMD_QUERY);
    return supported > 0 && (supported & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
           membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  }();
  return registered;
}

// The futex word is the atomic itself: lock-free and of the kernel's size.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG, value, nullptr,
                   nullptr, 0);
}

}  // namespace

void yield_core() {
  ::sched_yield();
}

Eventcount::Eventcount(bool use_membarrier) : barrier_by_sleeper_(use_membarrier && register_membarrier()) {}

bool Eventcount::announce_sleep(Key key) {
  uint32_t before = state_.fetch_or(kSleeping, std::memory_order_acq_rel);
  if ((before & ~kSleeping) != key) return false;
  // From here on a notifier either sees the bit, or its store is seen by the look that follows.
  if (barrier_by_sleeper_)
    MILLRACE_ASSERT(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0, "membarrier failed after registering");
  return true;
}

void Eventcount::sleep(Key key) {
  // Returns at once when the word has changed; a signal or a spurious return is the caller's loop's business.
  futex(state_, FUTEX_WAIT, key | kSleeping);
}

void Eventcount::wake() {
  uint32_t state = state_.load(std::memory_order_acquire);
  while (state & kSleeping) {
    // One of several notifiers takes the bit and pays for the system call; the others see it gone.
    if (state_.compare_exchange_weak(state, (state & ~kSleeping) + kOneWake, std::memory_order_acq_rel)) {
      futex(state_, FUTEX_WAKE, INT_MAX);
      return;
    }
  }
}

void Eventcount::interrupt() {
  uint32_t state = state_.load(std::memory_order_acquire);
  while (!state_.compare_exchange_weak(state, (state & ~kSleeping) + kOneWake, std::memory_order_acq_rel)) {
  }
  if (state & kSleeping) futex(state_, FUTEX_WAKE, INT_MAX);
}

void OneShot::wait() {
  uint32_t state = kUnset;
  if (!state_.compare_exchange_strong(state, kSleeping, std::memory_order_acq_rel) && state == kSet) return;
  while (!is_set()) futex(state_, FUTEX_WAIT, kSleeping);
}

void OneShot::wake() {
  futex(state_, FUTEX_WAKE, 1);
}

}  // namespace millrace::disruptor
