#include "store/data_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "base/files.h"

namespace millrace::store {
namespace {

constexpr std::string_view kFormatPrefix = "millrace-format ";

tl::unexpected<Error> directory_error(const std::filesystem::path& path, std::string_view trouble) {
  return fail(ErrorKind::kIo, "FILE_IO", fmt::format("the data directory {} {}", path.string(), trouble));
}

/// The directory exists afterwards, and is one.
Status ensure_directory(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) return directory_error(path, "is a file; name a directory");
    return {};
  }
  if (errno != ENOENT) return directory_error(path, fmt::format("cannot be used: {}", std::strerror(errno)));
  std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == ENOENT)
      return directory_error(
          path, fmt::format("cannot be created: its parent {} does not exist; create that first", parent.string()));
    return directory_error(path, fmt::format("cannot be created in {}: {}", parent.string(), std::strerror(errno)));
  }
  return sync_directory(parent);
}

/// The format number, or nullopt when there is no such file.
Result<std::optional<uint32_t>> read_format(const DataDirectory& directory) {
  std::filesystem::path path = directory.format();
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  if (fd < 0) return io_error("cannot read", path);
  std::array<char, 64> buffer{};
  ssize_t got = ::read(fd, buffer.data(), buffer.size());
  int error = errno;
  ::close(fd);
  errno = error;
  if (got < 0) return io_error("cannot read", path);
  std::string_view text(buffer.data(), static_cast<size_t>(got));
  uint32_t number = 0;
  if (text.starts_with(kFormatPrefix) && text.ends_with('\n')) {
    const char* end = text.data() + text.size() - 1;
    auto [stop, bad] = std::from_chars(text.data() + kFormatPrefix.size(), end, number);
    if (bad == std::errc{} && stop == end && number > 0) return number;
  }
  return fail(ErrorKind::kCorruption, "STORE_DAMAGED",
              fmt::format("{} does not hold a format number; is {} really a data directory of Millrace?", path.string(),
                          directory.root.string()));
}

Status check_format(const DataDirectory& directory, uint32_t found) {
  if (found <= kFormatVersion) return {};
  return fail(ErrorKind::kUnsupported, "FORMAT_TOO_NEW",
              fmt::format("the data directory {} has format {}, but this binary knows formats up to {}; nothing was "
                          "touched; start the newer version that wrote it",
                          directory.root.string(), found, kFormatVersion));
}

/// Names of other people's files, at most a few.
Result<std::vector<std::string>> strangers(const DataDirectory& directory) {
  constexpr size_t kShown = 3;
  // What a start that was interrupted may leave, and what a fresh file system has.
  constexpr std::array<std::string_view, 3> kExpected = {"lock", "format.new", "lost+found"};
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory.root, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (std::find(kExpected.begin(), kExpected.end(), name) == kExpected.end()) names.push_back(std::move(name));
    if (names.size() == kShown) break;
  }
  if (error) return directory_error(directory.root, "cannot be listed: " + error.message());
  return names;
}

}  // namespace

bool DataDirectory::has_database() const {
  return ::access((database() / "CURRENT").c_str(), F_OK) == 0;
}

std::string format_file_content() {
  return fmt::format("{}{}\n", kFormatPrefix, kFormatVersion);
}

Result<DirectoryLock> claim(const DataDirectory& directory) {
  MILLRACE_TRY(ensure_directory(directory.root));
  auto format = read_format(directory);
  if (!format) return tl::unexpected<Error>(std::move(format.error()));
  if (*format) {
    MILLRACE_TRY(check_format(directory, **format));
  } else {
    auto others = strangers(directory);
    if (!others) return tl::unexpected<Error>(std::move(others.error()));
    if (!others->empty())
      return directory_error(directory.root,
                             fmt::format("holds files that are not Millrace's ({}); name an empty or a new directory",
                                         fmt::join(*others, ", ")));
  }
  auto lock = DirectoryLock::acquire(directory.root);
  if (!lock) return lock;
  // Only the holder of the lock writes; another one may have written the same meanwhile.
  if (!*format) MILLRACE_TRY(write_file_durably(directory.format(), format_file_content()));
  return lock;
}

Status raise_format(const DataDirectory& directory) {
  auto format = read_format(directory);
  if (!format) return tl::unexpected<Error>(std::move(format.error()));
  if (*format && **format >= kFormatVersion) return {};
  return write_file_durably(directory.format(), format_file_content());
}

}  // namespace millrace::store
