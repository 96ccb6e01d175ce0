#include "bench/support/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

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

}  // namespace millrace::bench
