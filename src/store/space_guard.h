#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "store/store.h"

namespace millrace::store {

/// Refuses writes while the disk has less than the reserve left, so that the write-ahead log never meets a full disk:
/// RocksDB 7.8 does not survive that (docs/storage.md). Looks at the disk every megabyte or ten milliseconds of
/// writing, and at every write while it refuses.
///
/// Owned by the store; admit() by the writing thread, the rest by any.
class SpaceGuard {
 public:
  SpaceGuard(uint64_t reserve, std::function<uint64_t()> free_bytes)
      : reserve_(reserve), free_bytes_(std::move(free_bytes)) {}

  /// Room for `bytes` more in the log? What frees space may take half of the reserve. Errors: kUnavailable
  /// DISK_RESERVE.
  Status admit(uint64_t bytes, Purpose purpose);
  bool refusing() const { return refusing_.load(std::memory_order_relaxed); }
  uint64_t free_bytes() const { return free_.load(std::memory_order_relaxed); }
  uint64_t reserve_bytes() const { return reserve_; }
  void look();

 private:
  uint64_t reserve_;
  std::function<uint64_t()> free_bytes_;
  std::atomic<uint64_t> free_{0};
  std::atomic<bool> refusing_{true};  ///< true until the first look, which therefore happens at the first write
  uint64_t written_since_ = 0;
  std::chrono::steady_clock::time_point looked_at_;
};

}  // namespace millrace::store
