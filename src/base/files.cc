#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace millrace {
namespace {

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

tl::unexpected<Error> io_error(std::string_view what, const std::filesystem::path& path) {
  return fail(ErrorKind::kIo, "FILE_IO", fmt::format("{} {}: {}", what, path.string(), std::strerror(errno)));
}

Status sync_directory(const std::filesystem::path& directory) {
  int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return io_error("cannot open", directory);
  bool synced = ::fsync(fd) == 0;
  int error = errno;
  ::close(fd);
  errno = error;
  if (!synced) return io_error("cannot sync", directory);
  return {};
}

Status write_file_durably(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += ".new";
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return io_error("cannot create", temporary);
  bool good = write_all(fd, content) && ::fsync(fd) == 0;
  int error = errno;
  ::close(fd);
  errno = error;
  if (!good) return io_error("cannot write", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return io_error("cannot rename to", path);
  return sync_directory(path.parent_path());
}

}  // namespace millrace
