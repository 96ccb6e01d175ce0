#include "backup/files.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/files.h"
#include "base/standard_files.h"
#include "crypto/hash.h"

namespace millrace::backup {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kMaxTextBytes = 64u << 20;
constexpr std::string_view kFormat = "millrace-backup 1";

/// Closed when it goes.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  const int fd_;
};

ssize_t read_some(int fd, char* into, size_t size) {
  ssize_t got;
  do got = ::read(fd, into, size);
  while (got < 0 && errno == EINTR);
  return got;
}

bool write_all(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool is_digest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// One that stays inside the backup.
bool is_plain_path(std::string_view path) {
  const std::filesystem::path parts(path);
  return !path.empty() && parts.is_relative() &&
         std::none_of(parts.begin(), parts.end(), [](const auto& part) { return part == ".." || part == "."; });
}

template <typename Fn>
Status each_line(std::string_view text, Fn&& fn) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return damaged("its last line does not end");
    MILLRACE_TRY(fn(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  return {};
}

}  // namespace

tl::unexpected<Error> damaged(std::string message) {
  return fail(ErrorKind::kCorruption, "BACKUP_DAMAGED", "the backup is damaged: " + std::move(message));
}

Result<std::vector<std::string>> files_of(const std::filesystem::path& root) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(root, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const auto kind = entry->symlink_status(error).type();
    if (kind == std::filesystem::file_type::directory) continue;
    if (kind != std::filesystem::file_type::regular)
      return damaged(fmt::format("{} is neither a file nor a directory", entry->path().string()));
    files.push_back(entry->path().lexically_relative(root).generic_string());
  }
  if (error) return fail(ErrorKind::kIo, "FILE_IO", fmt::format("cannot list {}: {}", root.string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> digest(const std::filesystem::path& file, const std::filesystem::path* to,
                           const Progress& progress) {
  const Descriptor from(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!from.valid()) return io_error("cannot open", file);
  const Descriptor into(to ? ::open(to->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1);
  if (to && !into.valid()) return io_error("cannot create", *to);
  crypto::Sha256 hash;
  Bytes buffer(kBufferBytes, '\0');
  for (;;) {
    const ssize_t got = read_some(from.get(), buffer.data(), buffer.size());
    if (got < 0) return io_error("cannot read", file);
    if (got == 0) break;
    const ByteView bytes(buffer.data(), static_cast<size_t>(got));
    hash.update(bytes);
    if (to && !write_all(into.get(), bytes)) return io_error("cannot write", *to);
    if (progress && !progress(bytes.size())) return fail(ErrorKind::kUnavailable, "STOPPING", "it was interrupted");
  }
  if (to && ::fsync(into.get()) != 0) return io_error("cannot sync", *to);
  return to_hex(hash.finish());
}

std::string format_digests(const Digests& digests) {
  std::string text;
  for (const auto& [path, digest] : digests) text += fmt::format("{}  {}\n", digest, path);
  return text;
}

Result<Digests> parse_digests(std::string_view text) {
  Digests digests;
  MILLRACE_TRY(each_line(text, [&](std::string_view line) -> Status {
    const std::string_view digest = line.substr(0, std::min<size_t>(line.size(), 64));
    if (!is_digest(digest) || line.substr(64, 2) != "  " || !is_plain_path(line.substr(66)))
      return damaged(fmt::format("SHA256SUMS has the line '{}'", line.substr(0, 200)));
    if (!digests.emplace(line.substr(66), digest).second)
      return damaged(fmt::format("SHA256SUMS names {} twice", line.substr(66)));
    return {};
  }));
  return digests;
}

std::string format_info(const Info& info) {
  return fmt::format("{}\nname = {}\nnode = {}\ncreatedAt = {}\nversion = {}\nfiles = {}\nbytes = {}\n", kFormat,
                     info.name, info.node, info.created_at, info.version, info.files, info.bytes);
}

Result<Info> parse_info(std::string_view text) {
  if (!text.starts_with(fmt::format("{}\n", kFormat)))
    return damaged(fmt::format("backup-info does not begin with '{}'", kFormat));
  Info info;
  std::map<std::string, std::string, std::less<>> values;
  MILLRACE_TRY(each_line(text.substr(kFormat.size() + 1), [&](std::string_view line) -> Status {
    const size_t equals = line.find(" = ");
    if (equals == std::string_view::npos) return damaged(fmt::format("backup-info has the line '{}'", line));
    values.emplace(line.substr(0, equals), line.substr(equals + 3));
    return {};
  }));
  auto number = [&](std::string_view name, uint64_t& into) -> Status {
    const std::string& value = values[std::string(name)];
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
    if (error != std::errc() || end != value.data() + value.size())
      return damaged(fmt::format("backup-info says {} = '{}'", name, value));
    return {};
  };
  info.name = values["name"];
  info.node = values["node"];
  info.created_at = values["createdAt"];
  info.version = values["version"];
  MILLRACE_TRY(number("files", info.files));
  MILLRACE_TRY(number("bytes", info.bytes));
  return info;
}

Result<std::string> read_text(const std::filesystem::path& file) {
  const Descriptor from(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!from.valid()) return io_error("cannot open", file);
  std::string text;
  Bytes buffer(kBufferBytes, '\0');
  while (text.size() <= kMaxTextBytes) {
    const ssize_t got = read_some(from.get(), buffer.data(), buffer.size());
    if (got < 0) return io_error("cannot read", file);
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return damaged(fmt::format("{} is far too long", file.string()));
}

Status sync_tree(const std::filesystem::path& root) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(root, error), end;
  for (; !error && entry != end; entry.increment(error))
    if (entry->is_directory(error)) MILLRACE_TRY(sync_directory(entry->path()));
  if (error) return fail(ErrorKind::kIo, "FILE_IO", fmt::format("cannot list {}: {}", root.string(), error.message()));
  return sync_directory(root);
}

}  // namespace millrace::backup
