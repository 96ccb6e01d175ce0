#include "tests/support/faults/fault_file_system.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace millrace::tests {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

std::string normal(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

FileKind kind_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename();
  if (name.ends_with(".log")) return FileKind::kWal;
  if (name.ends_with(".sst")) return FileKind::kTable;
  return name.starts_with("MANIFEST-") ? FileKind::kManifest : FileKind::kOther;
}

IOStatus as_status(Failure failure) {
  return failure == Failure::kNoSpace ? IOStatus::NoSpace("injected: no space left on device")
                                      : IOStatus::IOError("injected: input/output error");
}

std::optional<std::string> content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

class FaultFileSystem::File final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  File(FaultFileSystem& faults, std::string path, std::unique_ptr<rocksdb::FSWritableFile>&& target)
      : FSWritableFileOwnerWrapper(std::move(target)), faults_(faults), path_(std::move(path)) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, IODebugContext* context) override {
    auto failure = faults_.failure_of(path_, Operation::kAppend);
    rocksdb::Slice part(data.data(), failure == Failure::kShortWrite ? data.size() / 2 : failure ? 0 : data.size());
    IOStatus status = part.empty() ? IOStatus::OK() : target()->Append(part, options, context);
    if (status.ok()) faults_.on_appended(path_, part.size());
    return failure ? as_status(*failure) : status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* context) override {
    IOStatus status = target()->Truncate(size, options, context);
    if (status.ok()) faults_.on_truncated(path_, size);
    return status;
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    // What is appended while the sync runs may not be part of it.
    uint64_t size = faults_.size_of(path_);
    IOStatus status = faults_.admit(path_, Operation::kSync);
    if (status.ok()) faults_.on_synced(path_, size);
    return status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override { return Sync(options, context); }

 private:
  FaultFileSystem& faults_;
  const std::string path_;
};

class FaultFileSystem::OverwrittenFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  OverwrittenFile(FaultFileSystem& faults, std::string path, std::unique_ptr<rocksdb::FSRandomRWFile>&& target)
      : FSRandomRWFileOwnerWrapper(std::move(target)), faults_(faults), path_(std::move(path)) {}

  IOStatus Write(uint64_t offset, const rocksdb::Slice& data, const IOOptions& options,
                 IODebugContext* context) override {
    auto failure = faults_.failure_of(path_, Operation::kAppend);
    rocksdb::Slice part(data.data(), failure == Failure::kShortWrite ? data.size() / 2 : failure ? 0 : data.size());
    faults_.on_overwriting(path_, offset, part.size());
    IOStatus status = part.empty() ? IOStatus::OK() : FSRandomRWFileOwnerWrapper::Write(offset, part, options, context);
    return failure ? as_status(*failure) : status;
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    // What is written while the sync runs may not be part of it.
    const size_t count = faults_.overwritten(path_);
    IOStatus status = faults_.admit(path_, Operation::kSync);
    if (status.ok()) faults_.on_overwritten_synced(path_, count);
    return status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override { return Sync(options, context); }

 private:
  FaultFileSystem& faults_;
  const std::string path_;
};

class FaultFileSystem::Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(FaultFileSystem& faults, std::string path, std::unique_ptr<rocksdb::FSDirectory>&& target)
      : FSDirectoryWrapper(std::move(target)), faults_(faults), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    IOStatus status = faults_.admit(path_, Operation::kSyncDirectory);
    if (status.ok()) faults_.on_directory_synced(path_);
    return status;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* context,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, context);
  }

 private:
  FaultFileSystem& faults_;
  const std::string path_;
};

FaultFileSystem::FaultFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

void FaultFileSystem::fail(Rule rule) {
  MutexLock lock(mutex_);
  rules_.push_back(rule);
}

void FaultFileSystem::heal() {
  MutexLock lock(mutex_);
  rules_.clear();
}

uint64_t FaultFileSystem::operations() const {
  MutexLock lock(mutex_);
  return operations_;
}

uint64_t FaultFileSystem::failures() const {
  MutexLock lock(mutex_);
  return failures_;
}

void FaultFileSystem::cut_power(uint64_t after) {
  MutexLock lock(mutex_);
  power_until_ = operations_ + after;
}

void FaultFileSystem::restore_power(double kept) {
  MutexLock lock(mutex_);
  for (const auto& [path, extent] : extents_) {
    std::error_code gone;  // Deleted, or its name is not durable.
    auto reached = static_cast<uint64_t>(static_cast<double>(extent.size - extent.synced) * kept);
    if (extent.size > extent.synced) std::filesystem::resize_file(path, extent.synced + reached, gone);
  }
  for (const auto& [path, parts] : overwritten_) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    if (!file) continue;  // Deleted.
    for (size_t i = parts.size(); i-- > 0;) {
      // Every n-th page had reached the disk, so that what is kept has gaps.
      if (std::floor(static_cast<double>(i + 1) * kept) > std::floor(static_cast<double>(i) * kept)) continue;
      file.seekp(static_cast<std::streamoff>(parts[i].offset));
      file.write(parts[i].before.data(), static_cast<std::streamsize>(parts[i].before.size()));
    }
  }
  for (auto name = new_names_.rbegin(); name != new_names_.rend(); ++name) {
    if (name->before)
      std::ofstream(name->path, std::ios::binary | std::ios::trunc) << *name->before;
    else
      std::filesystem::remove(name->path);
  }
  extents_.clear();
  overwritten_.clear();
  new_names_.clear();
  power_until_ = UINT64_MAX;
}

std::optional<Failure> FaultFileSystem::failure_of(const std::string& path, Operation operation) {
  MutexLock lock(mutex_);
  if (operations_ >= power_until_) return Failure::kIo;
  ++operations_;
  for (Rule& rule : rules_) {
    bool matches = (!rule.file || *rule.file == kind_of(path)) && (!rule.operation || *rule.operation == operation);
    if (!matches || rule.count == 0) continue;
    if (rule.skip > 0) {
      --rule.skip;
      continue;
    }
    --rule.count;
    ++failures_;
    return rule.failure;
  }
  return std::nullopt;
}

IOStatus FaultFileSystem::admit(const std::string& path, Operation operation) {
  auto failure = failure_of(path, operation);
  return failure ? as_status(*failure) : IOStatus::OK();
}

void FaultFileSystem::on_appended(const std::string& path, uint64_t bytes) {
  MutexLock lock(mutex_);
  extents_[path].size += bytes;
}

/// What lies beyond the file's end is taken as zeros there.
void FaultFileSystem::on_overwriting(const std::string& path, uint64_t offset, size_t bytes) {
  constexpr uint64_t kPageBytes = 4096;
  std::ifstream file(path, std::ios::binary);
  MutexLock lock(mutex_);
  for (uint64_t at = offset; at < offset + bytes;) {
    const uint64_t end = std::min(offset + bytes, (at / kPageBytes + 1) * kPageBytes);
    std::string before(end - at, '\0');
    file.clear();
    file.seekg(static_cast<std::streamoff>(at));
    file.read(before.data(), static_cast<std::streamsize>(before.size()));
    overwritten_[path].push_back({at, std::move(before)});
    at = end;
  }
}

size_t FaultFileSystem::overwritten(const std::string& path) {
  MutexLock lock(mutex_);
  return overwritten_[path].size();
}

void FaultFileSystem::on_overwritten_synced(const std::string& path, size_t count) {
  MutexLock lock(mutex_);
  auto& parts = overwritten_[path];
  parts.erase(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(std::min(count, parts.size())));
}

void FaultFileSystem::on_truncated(const std::string& path, uint64_t size) {
  MutexLock lock(mutex_);
  Extent& extent = extents_[path];
  extent = {size, std::min(extent.synced, size)};
}

void FaultFileSystem::on_synced(const std::string& path, uint64_t size) {
  MutexLock lock(mutex_);
  Extent& extent = extents_[path];
  extent.synced = std::max(extent.synced, std::min(size, extent.size));
}

void FaultFileSystem::on_directory_synced(const std::string& path) {
  MutexLock lock(mutex_);
  std::erase_if(new_names_,
                [&](const NewName& name) { return std::filesystem::path(name.path).parent_path() == path; });
}

uint64_t FaultFileSystem::size_of(const std::string& path) {
  MutexLock lock(mutex_);
  return extents_[path].size;
}

void FaultFileSystem::add_name(const std::string& path, std::optional<std::string> before) {
  new_names_.push_back({path, std::move(before)});
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& given, const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* context) {
  std::string path = normal(given);
  IOStatus status = admit(path, Operation::kCreate);
  if (status.ok()) status = target()->NewWritableFile(given, options, file, context);
  if (!status.ok()) return status;
  *file = std::make_unique<File>(*this, path, std::move(*file));
  MutexLock lock(mutex_);
  extents_[path] = {};
  add_name(path, std::nullopt);
  return status;
}

IOStatus FaultFileSystem::NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSRandomRWFile>* file, IODebugContext* context) {
  IOStatus status = target()->NewRandomRWFile(path, options, file, context);
  if (status.ok()) *file = std::make_unique<OverwrittenFile>(*this, normal(path), std::move(*file));
  return status;
}

IOStatus FaultFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                       std::unique_ptr<rocksdb::FSDirectory>* directory, IODebugContext* context) {
  IOStatus status = target()->NewDirectory(path, options, directory, context);
  if (status.ok()) *directory = std::make_unique<Directory>(*this, normal(path), std::move(*directory));
  return status;
}

IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                                     IODebugContext* context) {
  std::string source = normal(from), name = normal(to);
  IOStatus status = admit(name, Operation::kRename);
  if (!status.ok()) return status;
  auto before = content_of(name);
  status = target()->RenameFile(from, to, options, context);
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  if (auto moved = extents_.extract(source)) extents_[name] = moved.mapped();
  std::erase_if(new_names_, [&](const NewName& made) { return made.path == source; });
  add_name(name, std::move(before));
  return status;
}

IOStatus FaultFileSystem::DeleteFile(const std::string& given, const IOOptions& options, IODebugContext* context) {
  std::string path = normal(given);
  IOStatus status = admit(path, Operation::kDelete);
  if (status.ok()) status = target()->DeleteFile(given, options, context);
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  extents_.erase(path);
  overwritten_.erase(path);
  std::erase_if(new_names_, [&](const NewName& made) { return made.path == path; });
  return status;
}

IOStatus FaultFileSystem::LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                                   IODebugContext* context) {
  std::string name = normal(to);
  IOStatus status = admit(name, Operation::kCreate);
  if (status.ok()) status = target()->LinkFile(from, to, options, context);
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  add_name(name, std::nullopt);
  return status;
}

}  // namespace millrace::tests
