#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "store/store.h"

namespace millrace::store {
namespace {

constexpr const char* kLockFile = "lock";

/// The process id that the holder wrote, for the message; the lock itself does not depend on it.
std::string holder_of(int fd) {
  std::array<char, 32> text{};
  ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
  std::string pid(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  pid.resize(std::min(pid.find_first_not_of("0123456789"), pid.size()));
  return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

Result<DirectoryLock> DirectoryLock::acquire(const std::filesystem::path& directory) {
  std::filesystem::path path = directory / kLockFile;
  // The file stays for ever: removing it would let two processes lock two different files of the same name.
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    return fail(ErrorKind::kIo, "FILE_IO",
                fmt::format("cannot write to the data directory {}: {}", directory.string(), std::strerror(errno)));
  DirectoryLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return fail(ErrorKind::kIo, "FILE_IO", fmt::format("cannot lock {}: {}", path.string(), std::strerror(errno)));
    return fail(ErrorKind::kUnavailable, "STORE_IN_USE",
                fmt::format("the data directory {} is in use by {}; stop it, or give this one another directory",
                            directory.string(), holder_of(fd)));
  }
  std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return fail(ErrorKind::kIo, "FILE_IO", fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  return lock;
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace millrace::store
