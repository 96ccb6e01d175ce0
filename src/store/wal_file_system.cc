#include "store/wal_file_system.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "base/thread.h"

namespace millrace::store {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

/// Zeros between two syncs: what a commit's sync may find in its way.
constexpr uint64_t kChunkBytes = 256 * 1024;
/// What an opening waits for when no file is ready: some ten milliseconds.
constexpr uint64_t kFirstBytes = 4 << 20;

std::string making_of(const std::string& path) {
  return path + ".new";
}

}  // namespace

/// Appends by overwriting the zeros. By one writer.
class WalFileSystem::Log final : public rocksdb::FSWritableFile {
 public:
  Log(std::unique_ptr<rocksdb::FSRandomRWFile> file, Size size) : file_(std::move(file)), size_(std::move(size)) {}

  using FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, IODebugContext* context) override {
    IOStatus status = file_->Write(size_->load(std::memory_order_relaxed), data, options, context);
    if (status.ok()) size_->fetch_add(data.size(), std::memory_order_release);
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override { return file_->Sync(options, context); }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override { return file_->Fsync(options, context); }
  IOStatus Close(const IOOptions& options, IODebugContext* context) override { return file_->Close(options, context); }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_->load(std::memory_order_acquire); }

 private:
  std::unique_ptr<rocksdb::FSRandomRWFile> file_;
  Size size_;
};

void remove_prepared_wal(const std::string& path) {
  std::error_code ignored;  // What cannot be removed shows when it is to be replaced.
  for (const std::string& file : {path, making_of(path)}) std::filesystem::remove_all(file, ignored);
}

WalFileSystem::WalFileSystem(std::shared_ptr<rocksdb::FileSystem> base, Prepared prepared)
    : FileSystemWrapper(std::move(base)), prepared_(std::move(prepared)) {
  std::error_code ignored;
  ready_ = prepared_.reuse && std::filesystem::is_regular_file(prepared_.path, ignored);
  if (!ready_) {
    remove_prepared_wal(prepared_.path);
    ready_ = prepare(std::min(kFirstBytes, prepared_.bytes)).ok();
  }
  thread_ = std::thread([this] { run(); });
}

WalFileSystem::~WalFileSystem() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool WalFileSystem::stopping() {
  std::lock_guard lock(mutex_);
  return stopping_;
}

void WalFileSystem::run() {
  name_this_thread("wal-files");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || (wanted_ && !ready_); });
    if (stopping_) return;
    lock.unlock();
    const IOStatus status = prepare(prepared_.bytes);
    if (!status.ok() && !status.IsAborted())
      spdlog::warn("no file is ready for the next write-ahead log, so commits will be slower: {}", status.ToString());
    lock.lock();
    wanted_ = false;
    ready_ = status.ok();
  }
}

/// Under another name until it is whole and on disk, so that what has the name can be used as it is.
IOStatus WalFileSystem::prepare(uint64_t bytes) {
  const std::string making = making_of(prepared_.path);
  IOStatus status = fill(making, bytes);
  if (status.ok()) status = target()->RenameFile(making, prepared_.path, IOOptions(), nullptr);
  // Where the disk is full its space is wanted.
  if (!status.ok()) target()->DeleteFile(making, IOOptions(), nullptr).PermitUncheckedError();
  return status;
}

IOStatus WalFileSystem::fill(const std::string& path, uint64_t bytes) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = target()->NewWritableFile(path, rocksdb::FileOptions(), &file, nullptr);
  const std::string zeros(std::min(kChunkBytes, bytes), '\0');
  for (uint64_t written = 0; status.ok() && written < bytes; written += zeros.size()) {
    if (stopping()) return IOStatus::Aborted("stopping");
    if (!prepared_.has_room()) return IOStatus::NoSpace("the disk is nearly full");
    status = file->Append(zeros, IOOptions(), nullptr);
    if (status.ok()) status = file->Sync(IOOptions(), nullptr);
  }
  return status.ok() ? file->Close(IOOptions(), nullptr) : status;
}

bool WalFileSystem::take(const std::string& path, IODebugContext* context) {
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(ready_, false)) return false;
  }
  // Somebody may have removed it; then the log is a growing file.
  if (!target()->RenameFile(prepared_.path, path, IOOptions(), context).ok()) return false;
  // Before anything is written: a crash must not find the first commits under the old name.
  std::unique_ptr<rocksdb::FSDirectory> directory;
  const std::string parent = std::filesystem::path(path).parent_path();
  return target()->NewDirectory(parent, IOOptions(), &directory, context).ok() &&
         directory->Fsync(IOOptions(), context).ok();
}

void WalFileSystem::order_next() {
  {
    std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  changed_.notify_one();
}

IOStatus WalFileSystem::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* context) {
  if (!path.ends_with(".log")) return target()->NewWritableFile(path, options, file, context);
  const bool taken = take(path, context);
  // Only now: until then the name was in use. Also when none was ready, since there may be room for one by now.
  order_next();
  if (!taken) return target()->NewWritableFile(path, options, file, context);
  std::unique_ptr<rocksdb::FSRandomRWFile> opened;
  IOStatus status = target()->NewRandomRWFile(path, options, &opened, context);
  if (!status.ok()) return status;
  auto size = std::make_shared<std::atomic<uint64_t>>(0);
  *file = std::make_unique<Log>(std::move(opened), size);
  std::lock_guard lock(mutex_);
  sizes_[path] = std::move(size);
  return status;
}

IOStatus WalFileSystem::GetFileSize(const std::string& path, const IOOptions& options, uint64_t* size,
                                    IODebugContext* context) {
  {
    std::lock_guard lock(mutex_);
    if (auto log = sizes_.find(path); log != sizes_.end()) {
      *size = log->second->load(std::memory_order_acquire);
      return IOStatus::OK();
    }
  }
  return target()->GetFileSize(path, options, size, context);
}

IOStatus WalFileSystem::DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* context) {
  IOStatus status = target()->DeleteFile(path, options, context);
  std::lock_guard lock(mutex_);
  if (status.ok()) sizes_.erase(path);
  return status;
}

}  // namespace millrace::store
