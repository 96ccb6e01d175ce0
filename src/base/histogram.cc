#include "base/histogram.h"

#include <bit>
#include <cmath>

namespace millrace {
namespace {

// Values below 4 have a bucket each; above, the top two bits below the leading one choose among four.
int bucket_of(uint64_t value) {
  if (value < 4) return static_cast<int>(value);
  int log = 63 - std::countl_zero(value);
  return (log - 1) * 4 + static_cast<int>((value >> (log - 2)) & 3);
}

uint64_t upper_bound_of(int bucket) {
  if (bucket < 4) return static_cast<uint64_t>(bucket);
  int log = bucket / 4 + 1;
  uint64_t step = uint64_t{1} << (log - 2);
  return (uint64_t{1} << log) + step * static_cast<uint64_t>(bucket % 4 + 1) - 1;
}

}  // namespace

void Histogram::record(uint64_t value) {
  buckets_[static_cast<size_t>(bucket_of(value))].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

uint64_t Histogram::count() const {
  uint64_t total = 0;
  for (const auto& bucket : buckets_) total += bucket.load(std::memory_order_relaxed);
  return total;
}

uint64_t Histogram::quantile(double q) const {
  uint64_t total = count();
  if (total == 0) return 0;
  auto rank = static_cast<uint64_t>(std::ceil(q * static_cast<double>(total)));
  uint64_t seen = 0;
  for (int i = 0; i < kBuckets; ++i) {
    seen += buckets_[static_cast<size_t>(i)].load(std::memory_order_relaxed);
    if (seen >= rank) return upper_bound_of(i);
  }
  return upper_bound_of(kBuckets - 1);
}

uint64_t Histogram::count_at_most(uint64_t bound) const {
  uint64_t seen = 0;
  for (int i = 0; i < kBuckets && upper_bound_of(i) <= bound; ++i)
    seen += buckets_[static_cast<size_t>(i)].load(std::memory_order_relaxed);
  return seen;
}

}  // namespace millrace
