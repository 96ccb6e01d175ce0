#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace millrace::disruptor {

/// Two lines: the prefetcher of current x86 cores fetches lines in pairs.
inline constexpr size_t kCacheLinePair = 128;

/// How many elements have passed a point: elements [0, get()) have. Only grows. One writer, any number of readers;
/// what the writer did before set() is seen by who reads the new value. Alone on its cache lines, so that the writer
/// does not slow down the neighbours' readers.
class alignas(kCacheLinePair) Sequence {
 public:
  int64_t get() const { return value_.load(std::memory_order_acquire); }
  void set(int64_t value) { value_.store(value, std::memory_order_release); }
  /// By the writer itself, which needs no ordering with its own stores.
  int64_t own() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

}  // namespace millrace::disruptor
