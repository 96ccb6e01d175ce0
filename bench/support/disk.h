#pragma once

#include <cstddef>
#include <filesystem>

#include "base/histogram.h"

namespace millrace::bench {

/// What the disk itself can do: appends of `bytes` to a growing file in `directory`, each with an fdatasync or none.
struct Disk {
  double per_second = 0;
  double cpu_us = 0;  ///< of this process, for each append
};
Disk append_for(const std::filesystem::path& directory, double seconds, size_t bytes, bool sync);

/// How long an fdatasync takes (nanoseconds, into `latencies`) that follows each write of `bytes` into a file that need
/// not grow, `per_second` of them.
void sync_at_rate(const std::filesystem::path& directory, double seconds, size_t bytes, double per_second,
                  Histogram& latencies);

}  // namespace millrace::bench
