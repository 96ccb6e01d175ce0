#include "store/wal_tail.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/files.h"

namespace millrace::store {
namespace {

// RocksDB's db/log_format.h.
constexpr size_t kBlockBytes = 32 * 1024;
constexpr size_t kHeaderBytes = 7;  // masked CRC-32C u32, length u16, type u8; little-endian
constexpr uint8_t kFull = 1, kFirst = 2, kLast = 4;
// A write begins with its first sequence number, u64, and its number of rows, u32.
constexpr size_t kWriteHeaderBytes = 12;
/// More rows than one write can have: sequence numbers do not go further ahead from one write to the next but one. What
/// looks like a write and is not, such as a log file within somebody's record, hardly ever has one so near.
constexpr uint64_t kMaxRowsOfWrite = 4'000'000;

template <typename T>
T load_le(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  static_assert(std::endian::native == std::endian::little);
  return value;
}

uint32_t unmask(uint32_t crc) {
  const uint32_t rotated = crc - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

/// A write is one kFull fragment, or kFirst, middle ones, kLast.
struct Fragment {
  uint8_t type = 0;
  ByteView payload;
  bool begins() const { return type == kFull || type == kFirst; }
  bool ends() const { return type == kFull || type == kLast; }
  size_t bytes() const { return kHeaderBytes + payload.size(); }
};

/// The fragment at the start of what is left of a block; nullopt when there is no whole and sound one.
std::optional<Fragment> read_fragment(ByteView block) {
  if (block.size() < kHeaderBytes) return std::nullopt;
  const size_t length = load_le<uint16_t>(block.data() + 4);
  const auto type = static_cast<uint8_t>(block[6]);
  if (type < kFull || type > kLast || kHeaderBytes + length > block.size()) return std::nullopt;
  if (crc32c(block.substr(6, 1 + length)) != unmask(load_le<uint32_t>(block.data()))) return std::nullopt;
  return Fragment{type, block.substr(kHeaderBytes, length)};
}

/// The first sequence number of the write that begins with `head`, and the last.
struct Sequences {
  uint64_t first = 0;
  uint64_t last = 0;
};
std::optional<Sequences> read_sequences(ByteView head) {
  if (head.size() < kWriteHeaderBytes) return std::nullopt;
  const auto first = load_le<uint64_t>(head.data());
  return Sequences{first, first + load_le<uint32_t>(head.data() + 8) - 1};
}

/// One log file, read block by block.
class LogFile {
 public:
  explicit LogFile(std::filesystem::path path) : path_(std::move(path)) {}
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  Status read();
  /// What read() found.
  uint64_t size() const { return size_; }
  uint64_t end() const { return end_; }                      ///< one past the last whole write
  uint64_t stop() const { return stop_; }                    ///< where reading could not go on
  uint64_t content_end() const { return content_end_; }      ///< one past the last byte that is not zero
  uint64_t last_sequence() const { return last_sequence_; }  ///< of the last whole write; 0 without one

  /// Where a write begins that is later than the last whole one; there must not be one, since writes are synced one by
  /// one.
  Result<std::optional<uint64_t>> find_later_write();

 private:
  Status open();
  /// The block at `at`, a multiple of kBlockBytes; the last one may be shorter.
  Result<ByteView> block(uint64_t at);
  /// False where reading cannot go on.
  bool read_block(uint64_t at, ByteView block);
  Status find_content_end();
  bool is_later(const Fragment& fragment) const;

  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0, end_ = 0, stop_ = 0, content_end_ = 0, last_sequence_ = 0;
  bool within_write_ = false;
  Bytes head_;  ///< of the write that is being read, its first kWriteHeaderBytes
  Bytes buffer_;
};

Status LogFile::open() {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return io_error("cannot read", path_);
  const off_t size = ::lseek(fd_, 0, SEEK_END);
  if (size < 0) return io_error("cannot read", path_);
  size_ = static_cast<uint64_t>(size);
  return {};
}

Result<ByteView> LogFile::block(uint64_t at) {
  buffer_.resize(std::min<uint64_t>(kBlockBytes, size_ - at));
  for (size_t got = 0; got < buffer_.size();) {
    const ssize_t n = ::pread(fd_, buffer_.data() + got, buffer_.size() - got, static_cast<off_t>(at + got));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // Shorter than it was just now.
    if (n <= 0) return io_error("cannot read", path_);
    got += static_cast<size_t>(n);
  }
  return ByteView(buffer_);
}

Status LogFile::read() {
  MILLRACE_TRY(open());
  stop_ = size_;
  for (uint64_t at = 0; at < size_; at += kBlockBytes) {
    auto bytes = block(at);
    if (!bytes) return tl::unexpected(std::move(bytes.error()));
    if (!read_block(at, *bytes)) break;
  }
  return find_content_end();
}

bool LogFile::read_block(uint64_t at, ByteView block) {
  // What is too short for a header at a block's end is filling.
  for (size_t used = 0; block.size() - used >= kHeaderBytes;) {
    stop_ = at + used;
    const auto fragment = read_fragment(block.substr(used));
    if (!fragment || fragment->begins() == within_write_) return false;
    if (fragment->begins()) head_.clear();
    head_ += fragment->payload.substr(0, kWriteHeaderBytes - head_.size());
    used += fragment->bytes();
    within_write_ = !fragment->ends();
    if (within_write_) continue;
    const auto sequences = read_sequences(head_);
    if (!sequences) return false;
    last_sequence_ = sequences->last;
    end_ = at + used;
  }
  stop_ = size_;
  return true;
}

Status LogFile::find_content_end() {
  content_end_ = end_;
  for (uint64_t at = end_ / kBlockBytes * kBlockBytes; at < size_; at += kBlockBytes) {
    auto bytes = block(at);
    if (!bytes) return tl::unexpected(std::move(bytes.error()));
    const size_t last = bytes->find_last_not_of('\0');
    if (last != ByteView::npos) content_end_ = std::max(content_end_, at + last + 1);
  }
  return {};
}

bool LogFile::is_later(const Fragment& fragment) const {
  const auto sequences = fragment.begins() ? read_sequences(fragment.payload) : std::nullopt;
  return sequences && sequences->first > last_sequence_ && sequences->first - last_sequence_ <= kMaxRowsOfWrite;
}

Result<std::optional<uint64_t>> LogFile::find_later_write() {
  const uint64_t first_block = stop_ / kBlockBytes * kBlockBytes;
  for (uint64_t at = first_block; at < content_end_; at += kBlockBytes) {
    auto bytes = block(at);
    if (!bytes) return tl::unexpected(std::move(bytes.error()));
    if (at == first_block) {
      // With a damaged length nobody knows where the next one begins.
      for (size_t used = stop_ - at; used < bytes->size() && at + used < content_end_; ++used)
        if (auto fragment = read_fragment(bytes->substr(used)); fragment && is_later(*fragment)) return at + used;
      continue;
    }
    size_t used = 0;
    while (auto fragment = read_fragment(bytes->substr(used))) {
      if (is_later(*fragment)) return at + used;
      used += fragment->bytes();
    }
  }
  return std::nullopt;
}

/// What is wrong with the last log that has content; empty when nothing is.
Result<std::string> damage_of(LogFile& log, const std::filesystem::path& path, uint64_t witnessed) {
  if (log.content_end() == log.end()) return std::string();
  auto later = log.find_later_write();
  if (!later) return tl::unexpected(std::move(later.error()));
  if (*later)
    return fmt::format("its write-ahead log {} cannot be read at byte {}, and goes on at byte {}", path.string(),
                       log.stop(), **later);
  if (log.last_sequence() > 0 && log.last_sequence() < witnessed)
    return fmt::format("its write-ahead log {} cannot be read at byte {}, after row {}, and rows up to {} were on disk",
                       path.string(), log.stop(), log.last_sequence(), witnessed);
  return std::string();
}

Result<std::vector<std::filesystem::path>> log_files(const std::filesystem::path& database) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(database, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".log") files.push_back(entry->path());
  if (error && error != std::errc::no_such_file_or_directory) {
    errno = error.value();
    return io_error("cannot list", database);
  }
  // Their numbers have leading zeros, but may outgrow them.
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    const std::string left = a.filename(), right = b.filename();
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return files;
}

}  // namespace

Result<std::vector<WalTail>> read_wal_tails(const std::filesystem::path& database, uint64_t witnessed) {
  auto files = log_files(database);
  if (!files) return tl::unexpected(std::move(files.error()));
  std::vector<WalTail> tails;
  bool is_last = true;  // of those with content
  for (auto path = files->rbegin(); path != files->rend(); ++path) {
    LogFile log(*path);
    MILLRACE_TRY(log.read());
    WalTail tail{*path, log.size(), log.end(), log.last_sequence(), log.content_end() - log.end(), {}};
    if (is_last) {
      auto damage = damage_of(log, *path, witnessed);
      if (!damage) return tl::unexpected(std::move(damage.error()));
      tail.damage = *std::move(damage);
    } else if (tail.torn_bytes > 0) {
      tail.damage = fmt::format("its write-ahead log {} cannot be read at byte {}, and is not the last one",
                                path->string(), log.stop());
    }
    is_last = is_last && log.content_end() == 0;
    tails.push_back(std::move(tail));
  }
  std::reverse(tails.begin(), tails.end());
  return tails;
}

Status cut_off(const WalTail& tail) {
  if (tail.end == tail.size || !tail.damage.empty()) return {};
  const int fd = ::open(tail.file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return io_error("cannot write to", tail.file);
  const bool cut = ::ftruncate(fd, static_cast<off_t>(tail.end)) == 0 && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  errno = error;
  return cut ? Status() : io_error("cannot shorten", tail.file);
}

}  // namespace millrace::store
