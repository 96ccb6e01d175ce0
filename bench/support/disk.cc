#include "bench/support/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "bench/support/report.h"

namespace millrace::bench {

Disk append_for(const std::filesystem::path& directory, double seconds, size_t bytes, bool sync) {
  const auto path = directory / "reference";
  int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  std::string block(bytes, 'x');
  int64_t appends = 0;
  Window window = measure([&] {
    for (double end = steady_seconds() + seconds; steady_seconds() < end; ++appends) {
      if (::write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size())) std::abort();
      if (sync && ::fdatasync(fd) != 0) std::abort();
    }
  });
  ::close(fd);
  ::unlink(path.c_str());
  return {static_cast<double>(appends) / window.seconds, window.cpu_seconds * 1e6 / static_cast<double>(appends)};
}

void sync_at_rate(const std::filesystem::path& directory, double seconds, size_t bytes, double per_second,
                  Histogram& latencies) {
  constexpr size_t kFileBytes = 64 << 20;
  const auto path = directory / "reference";
  int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  const std::string zeros(1 << 20, '\0'), block(bytes, 'x');
  for (size_t at = 0; at < kFileBytes; at += zeros.size())
    if (::pwrite(fd, zeros.data(), zeros.size(), static_cast<off_t>(at)) < 0) std::abort();
  if (::fsync(fd) != 0) std::abort();
  size_t at = 0;
  const double begin = steady_seconds();
  for (double due = begin; due < begin + seconds; due += 1 / per_second) {
    if (const double now = steady_seconds(); now < due)
      std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
    const double began = steady_seconds();
    if (::pwrite(fd, block.data(), block.size(), static_cast<off_t>(at)) < 0 || ::fdatasync(fd) != 0) std::abort();
    latencies.record(static_cast<uint64_t>((steady_seconds() - began) * 1e9));
    at = (at + bytes) % (kFileBytes - bytes);
  }
  ::close(fd);
  ::unlink(path.c_str());
}

}  // namespace millrace::bench
