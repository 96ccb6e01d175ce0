#include "store/table_footer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/files.h"

namespace millrace::store {
namespace {

// RocksDB's table/format.h, since format version 1: checksum type u8, two block handles of two varints each, zeros up
// to the version u32 and the magic number u64, both little-endian.
constexpr size_t kFooterBytes = 53, kVersionAt = 41, kMagicAt = 45;
constexpr uint64_t kMagic = 0x88e241b785f4cff7;
constexpr int kVarints = 4;

using Footer = std::array<char, kFooterBytes>;

/// Where the handles end; kVersionAt when they do not.
size_t end_of_handles(const Footer& footer) {
  size_t at = 1;
  for (int i = 0; i < kVarints; ++i) {
    while (at < kVersionAt && (static_cast<uint8_t>(footer[at]) & 0x80) != 0) ++at;
    if (at++ >= kVersionAt) return kVersionAt;
  }
  return at;
}

/// What is wrong with it; empty when nothing is, or it is no footer.
std::string_view fault_of(const Footer& footer) {
  uint64_t magic = 0;
  uint32_t version = 0;
  std::memcpy(&magic, footer.data() + kMagicAt, sizeof magic);
  std::memcpy(&version, footer.data() + kVersionAt, sizeof version);
  if (magic != kMagic) return "";
  if (version != kTableFormatVersion) return "names another format version";
  if (static_cast<uint8_t>(footer[0]) != kTableChecksum) return "names another checksum";
  const size_t end = end_of_handles(footer);
  if (std::string_view(footer.data() + end, kVersionAt - end).find_first_not_of('\0') != std::string_view::npos)
    return "has bytes where none should be";
  return "";
}

Status check_table_footer(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? Status() : io_error("cannot read", path);
  struct stat info {};
  Footer footer{};
  bool read = ::fstat(fd, &info) == 0;
  const bool is_short = read && info.st_size < static_cast<off_t>(kFooterBytes);
  if (read && !is_short)
    read = ::pread(fd, footer.data(), footer.size(), info.st_size - static_cast<off_t>(kFooterBytes)) ==
           static_cast<ssize_t>(kFooterBytes);
  const int error = errno;
  ::close(fd);
  errno = error;
  if (!read) return io_error("cannot read", path);
  const std::string_view fault = is_short ? "" : fault_of(footer);
  if (fault.empty()) return {};
  return fail(ErrorKind::kCorruption, "STORE_DAMAGED", fmt::format("the footer of {} {}", path.string(), fault));
}

}  // namespace

Status check_table_footers(const std::filesystem::path& database) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(database, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".sst") MILLRACE_TRY(check_table_footer(entry->path()));
  if (!error || error == std::errc::no_such_file_or_directory) return {};
  errno = error.value();
  return io_error("cannot list", database);
}

}  // namespace millrace::store
