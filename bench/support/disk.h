#pragma once

#include <cstddef>
#include <filesystem>

namespace millrace::bench {

/// What the disk itself can do: appends of `bytes` to a growing file in `directory`, each with an fdatasync or none.
struct Disk {
  double per_second = 0;
  double cpu_us = 0;  ///< of this process, for each append
};
Disk append_for(const std::filesystem::path& directory, double seconds, size_t bytes, bool sync);

}  // namespace millrace::bench
