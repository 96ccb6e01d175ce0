#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace millrace {

/// A fixed-size, lock-free histogram of non-negative integers (nanoseconds, bytes): four buckets to each power of
/// two, so a percentile is exact to about 20 %. Recording is one relaxed add; any thread may record or read.
class Histogram {
 public:
  static constexpr int kBuckets = 252;

  void record(uint64_t value);
  uint64_t count() const;
  uint64_t sum() const { return sum_.load(std::memory_order_relaxed); }
  /// The upper bound of the bucket in which the q-quantile lies (0 < q <= 1); 0 when nothing was recorded.
  uint64_t quantile(double q) const;
  /// How many recorded values are at most `bound`, as far as the buckets can tell.
  uint64_t count_at_most(uint64_t bound) const;

 private:
  std::array<std::atomic<uint64_t>, kBuckets> buckets_{};
  std::atomic<uint64_t> sum_{0};
};

}  // namespace millrace
