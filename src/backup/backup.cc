#include "backup/backup.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "backup/files.h"
#include "base/files.h"

namespace millrace::backup {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIncomplete = ".incomplete";
/// Marks what clear() may remove.
constexpr const char* kUnfinished = "unfinished";
constexpr const char *kData = "data", *kConfig = "config-node.properties", *kInfo = "backup-info",
                     *kDigests = "SHA256SUMS", *kRestoredConfig = "config-node.properties.restored";

Status failed_to(std::string_view what, const fs::path& path, const std::error_code& error) {
  return fail(ErrorKind::kIo, "FILE_IO", fmt::format("cannot {} {}: {}", what, path.string(), error.message()));
}

Status make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? failed_to("create", path, error) : Status{};
}

/// A file whose digest is not the one listed is damage; that it is not there, too.
Status check_file(const fs::path& backup, const std::string& path, const std::string& wanted, const fs::path* to,
                  const Progress& progress) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(backup / path, error)))
    return damaged(fmt::format("{} is missing", (backup / path).string()));
  auto found = digest(backup / path, to, progress);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (*found != wanted) return damaged(fmt::format("{} is not what was written", (backup / path).string()));
  return {};
}

/// The digests, after checking that they list what is there and no more.
Result<Digests> digests_of(const fs::path& backup, const Info& info) {
  auto text = read_text(backup / kDigests);
  if (!text) return tl::unexpected(std::move(text.error()));
  auto digests = parse_digests(*text);
  if (!digests) return digests;
  auto files = files_of(backup);
  if (!files) return tl::unexpected(std::move(files.error()));
  for (const std::string& file : *files)
    if (file != kDigests && !digests->contains(file)) return damaged(fmt::format("SHA256SUMS does not name {}", file));
  if (!digests->contains(kInfo) || digests->size() != info.files + 1)
    return damaged(fmt::format("SHA256SUMS names {} files instead of {}", digests->size(), info.files + 1));
  return digests;
}

/// Of a directory of backups, until it goes; nullopt in it while somebody else has it.
class DirectoryHold {
 public:
  static Result<std::optional<DirectoryHold>> take(const fs::path& directory) {
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return io_error("cannot open", directory);
    DirectoryHold hold(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return std::optional(std::move(hold));
    if (errno == EWOULDBLOCK) return std::nullopt;
    return io_error("cannot lock", directory);
  }
  DirectoryHold(DirectoryHold&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  DirectoryHold& operator=(DirectoryHold&&) = delete;
  ~DirectoryHold() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit DirectoryHold(int fd) : fd_(fd) {}
  int fd_;
};

/// That what was listed is there and no more: somebody may have been at the directory meanwhile.
Status check_complete(const fs::path& root, size_t expected) {
  auto files = files_of(root);
  if (!files) return tl::unexpected(std::move(files.error()));
  if (files->size() == expected) return {};
  return damaged(fmt::format("{} has {} files instead of the {} written", root.string(), files->size(), expected));
}

Status clear_held(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    if (!path.filename().native().ends_with(kIncomplete) || !entry->is_directory(ignored)) continue;
    // One that was killed before it was marked is empty.
    if (fs::exists(path / kUnfinished, ignored) || fs::is_empty(path, ignored)) found.push_back(path);
  }
  if (error) return failed_to("list", directory, error);
  for (const fs::path& path : found) {
    // The mark last: until then it can be found again.
    for (const auto& entry : fs::directory_iterator(path, error))
      if (entry.path().filename() != kUnfinished) fs::remove_all(entry.path(), error);
    if (!error) fs::remove_all(path, error);
    if (error) return failed_to("remove", path, error);
  }
  return {};
}

bool same_file_system(const fs::path& a, const fs::path& b) {
  struct stat first {
  }, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev;
}

/// Copies the data by way of `staging`; digests on the way.
Status copy_staged(const Request& request, const fs::path& into, const Progress& progress, Digests& digests) {
  std::error_code error;
  fs::remove_all(request.staging, error);
  Status copied = request.copy_data(request.staging);
  auto copy = [&](const std::string& file) -> Status {
    const std::string path = fmt::format("{}/{}", kData, file);
    const fs::path target = into / path;
    MILLRACE_TRY(make_directories(target.parent_path()));
    auto one = digest(request.staging / file, &target, progress);
    if (!one) return tl::unexpected(std::move(one.error()));
    digests[path] = *std::move(one);
    return {};
  };
  if (copied) {
    auto files = files_of(request.staging);
    if (!files) copied = tl::unexpected(std::move(files.error()));
    for (size_t i = 0; copied && i < files->size(); ++i) copied = copy((*files)[i]);
  }
  fs::remove_all(request.staging, error);
  return copied;
}

Result<Info> fill(const Request& request, const fs::path& into, const Progress& progress) {
  std::error_code error;
  // Never into somebody's directory.
  if (!fs::create_directory(into, error)) {
    if (!error) error = std::make_error_code(std::errc::file_exists);
    return tl::unexpected(failed_to("create", into, error).error());
  }
  MILLRACE_TRY(write_file_durably(into / kUnfinished, ""));
  Digests digests;
  if (request.staging.empty() || same_file_system(into, request.staging.parent_path()))
    MILLRACE_TRY(request.copy_data(into / kData));
  else
    MILLRACE_TRY(copy_staged(request, into, progress, digests));
  MILLRACE_TRY(write_file_durably(into / kConfig, request.config));
  auto files = files_of(into);
  if (!files) return tl::unexpected(std::move(files.error()));
  Info info = request.info;
  for (const std::string& file : *files) {
    if (file == kUnfinished) continue;
    if (!digests.contains(file)) {
      auto one = digest(into / file, nullptr, progress);
      if (!one) return tl::unexpected(std::move(one.error()));
      digests[file] = *std::move(one);
    }
    std::error_code ignored;
    info.bytes += fs::file_size(into / file, ignored);
  }
  info.files = digests.size();
  MILLRACE_TRY(write_file_durably(into / kInfo, format_info(info)));
  auto own = digest(into / kInfo, nullptr, {});
  if (!own) return tl::unexpected(std::move(own.error()));
  digests[kInfo] = *std::move(own);
  MILLRACE_TRY(write_file_durably(into / kDigests, format_digests(digests)));
  MILLRACE_TRY(check_complete(into, digests.size() + 2));  // SHA256SUMS, and the mark.
  fs::remove(into / kUnfinished, error);
  if (error) return tl::unexpected(failed_to("remove", into / kUnfinished, error).error());
  MILLRACE_TRY(sync_tree(into));
  return info;
}

Status copy_all(const fs::path& backup, const Digests& digests, const fs::path& to, const Progress& progress) {
  const std::string prefix = std::string(kData) + "/";
  size_t copied = 0;
  for (const auto& [path, wanted] : digests) {
    const bool is_data = path.starts_with(prefix);
    if (!is_data && path != kConfig) {
      MILLRACE_TRY(check_file(backup, path, wanted, nullptr, progress));
      continue;
    }
    const fs::path target = is_data ? to / path.substr(prefix.size()) : to / kRestoredConfig;
    MILLRACE_TRY(make_directories(target.parent_path()));
    MILLRACE_TRY(check_file(backup, path, wanted, &target, progress));
    ++copied;
  }
  MILLRACE_TRY(check_complete(to, copied));
  return sync_tree(to);
}

}  // namespace

Status check_name(std::string_view name) {
  const bool good = !name.empty() && name.size() <= 64 && name.front() != '.' && !name.ends_with(kIncomplete) &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                             c == '_' || c == '-';
                    });
  if (good) return {};
  return fail(ErrorKind::kInvalidArgument, "INVALID_BACKUP_NAME",
              fmt::format("'{}' is no name of a backup: 1 to 64 of a-z A-Z 0-9 . _ - are, not beginning with a dot",
                          name.substr(0, 100)));
}

Result<Info> create(const Request& request, const Progress& progress) {
  MILLRACE_TRY(check_name(request.info.name));
  MILLRACE_TRY(make_directories(request.directory));
  const fs::path to = request.directory / request.info.name;
  std::error_code error;
  if (fs::exists(to, error))
    return fail(ErrorKind::kAlreadyExists, "BACKUP_EXISTS", fmt::format("there is a backup {} already", to.string()));
  auto hold = DirectoryHold::take(request.directory);
  if (!hold) return tl::unexpected(std::move(hold.error()));
  if (!*hold)
    return fail(ErrorKind::kConflict, "BACKUP_RUNNING",
                fmt::format("another process makes a backup in {}", request.directory.string()));
  fs::path partial = to;
  partial += kIncomplete;
  (void)clear_held(request.directory);  // What cannot be removed is in nobody's way but of one of its name.
  if (fs::exists(fs::symlink_status(partial, error)))
    return fail(ErrorKind::kAlreadyExists, "BACKUP_EXISTS", fmt::format("{} is in the way", partial.string()));
  auto info = fill(request, partial, progress);
  if (info) {
    fs::rename(partial, to, error);
    if (!error) {
      MILLRACE_TRY(sync_directory(request.directory));
      return info;
    }
    info = tl::unexpected(failed_to("rename to", to, error).error());
  }
  fs::remove_all(partial, error);
  return info;
}

Result<std::vector<Info>> list(const fs::path& directory) {
  std::vector<Info> found;
  std::error_code error;
  fs::directory_iterator entry(directory, error), end;
  if (error == std::errc::no_such_file_or_directory) return found;
  for (; !error && entry != end; entry.increment(error))
    if (auto info = read_info(entry->path()); info && info->name == entry->path().filename()) found.push_back(*info);
  if (error) return tl::unexpected(failed_to("list", directory, error).error());
  std::sort(found.begin(), found.end(), [](const Info& a, const Info& b) { return a.name < b.name; });
  return found;
}

Result<Info> read_info(const fs::path& backup) {
  std::error_code error;
  if (!fs::exists(backup / kInfo, error) || !fs::exists(backup / kDigests, error))
    return fail(ErrorKind::kNotFound, "UNKNOWN_BACKUP",
                fmt::format("{} is no backup: it has no {} or no {}", backup.string(), kInfo, kDigests));
  auto text = read_text(backup / kInfo);
  if (!text) return tl::unexpected(std::move(text.error()));
  return parse_info(*text);
}

Status remove(const fs::path& backup) {
  if (auto info = read_info(backup); !info && info.error().kind == ErrorKind::kNotFound)
    return tl::unexpected(std::move(info.error()));
  std::error_code error;
  for (int number = 0;; ++number) {
    fs::path removed = backup;
    removed += fmt::format(".{}{}", number, kIncomplete);
    if (fs::exists(fs::symlink_status(removed, error))) continue;
    if (auto marked = write_file_durably(backup / kUnfinished, ""); !marked) return marked;
    fs::rename(backup, removed, error);
    return error ? failed_to("remove", backup, error) : Status{};
  }
}

Status clear(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory, error) && !error) return {};
  auto hold = DirectoryHold::take(directory);
  if (!hold) return tl::unexpected(std::move(hold.error()));
  return *hold ? clear_held(directory) : Status{};
}

Result<Info> verify(const fs::path& backup, const Progress& progress) {
  auto info = read_info(backup);
  if (!info) return info;
  auto digests = digests_of(backup, *info);
  if (!digests) return tl::unexpected(std::move(digests.error()));
  for (const auto& [path, wanted] : *digests) MILLRACE_TRY(check_file(backup, path, wanted, nullptr, progress));
  return info;
}

Result<Info> restore(const fs::path& backup, const fs::path& to, const Progress& progress) {
  auto info = read_info(backup);
  if (!info) return info;
  auto digests = digests_of(backup, *info);
  if (!digests) return tl::unexpected(std::move(digests.error()));
  std::error_code error;
  const bool exists = fs::exists(to, error);
  if (exists && (!fs::is_directory(to, error) || !fs::is_empty(to, error)))
    return fail(
        ErrorKind::kAlreadyExists, "DIRECTORY_NOT_EMPTY",
        fmt::format("{} is not an empty directory: a backup is restored to a new one, never in place", to.string()));
  // Built beside it, so that nobody opens half of it.
  fs::path partial = to.lexically_normal();
  if (!partial.has_filename()) partial = partial.parent_path();
  const fs::path target = partial;
  partial += kIncomplete;
  fs::remove_all(partial, error);
  MILLRACE_TRY(make_directories(partial));
  fs::permissions(partial, fs::perms::owner_all, error);
  Status copied = copy_all(backup, *digests, partial, progress);
  if (copied) {
    fs::rename(partial, target, error);  // Takes the place of an empty directory.
    if (!error) {
      MILLRACE_TRY(sync_directory(fs::absolute(target).parent_path()));
      return info;
    }
    copied = failed_to("rename to", target, error);
  }
  fs::remove_all(partial, error);
  return tl::unexpected(std::move(copied.error()));
}

}  // namespace millrace::backup
