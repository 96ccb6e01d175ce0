#include "store/space_guard.h"

#include <fmt/format.h>

namespace millrace::store {
namespace {

/// How much may be written, and how much time may pass, before the disk is looked at again (a look costs 2-3 us). The
/// reserve is many times the first; in the second a fast disk takes in some ten megabytes from others.
constexpr uint64_t kLookAfterBytes = 1 << 20;
constexpr std::chrono::milliseconds kLookAfter{10};

}  // namespace

void SpaceGuard::look() {
  free_.store(free_bytes_(), std::memory_order_relaxed);
  written_since_ = 0;
  looked_at_ = std::chrono::steady_clock::now();
}

Status SpaceGuard::admit(uint64_t bytes, Purpose purpose) {
  written_since_ += bytes;
  if (refusing() || written_since_ >= kLookAfterBytes || std::chrono::steady_clock::now() - looked_at_ >= kLookAfter) {
    look();
    written_since_ = bytes;
  }
  bool room = free_bytes() >= reserve_ + written_since_;
  refusing_.store(!room, std::memory_order_relaxed);
  if (room || (purpose == Purpose::kFreeSpace && free_bytes() >= reserve_ / 2 + written_since_)) return {};
  written_since_ -= bytes;
  return fail(
      ErrorKind::kUnavailable, "DISK_RESERVE",
      fmt::format("the disk has {} MiB free, and {} MiB are kept back (storage.reserveSize): writes are refused "
                  "until space is freed; reads go on, and topics can be deleted",
                  free_bytes() >> 20, reserve_ >> 20));
}

}  // namespace millrace::store
