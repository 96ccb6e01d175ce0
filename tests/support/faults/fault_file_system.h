#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace millrace::tests {

/// RocksDB's files by what they are for.
enum class FileKind : uint8_t { kWal, kManifest, kTable, kOther };
enum class Operation : uint8_t { kCreate, kAppend, kSync, kRename, kDelete, kSyncDirectory };
enum class Failure : uint8_t {
  kIo,         ///< EIO
  kNoSpace,    ///< ENOSPC
  kShortWrite  ///< half of the bytes are written, then EIO; on anything but an append the same as kIo
};

/// The machine's file system beneath RocksDB, that fails where it is told to and can lose power. It sees what RocksDB
/// writes, which the witness page and the other small files of a data directory are not.
///
/// A loss of power takes back what no sync has made durable: bytes at a file's end, bytes written over others, new
/// names and renames whose directory was not synced. Deletions are taken as durable at once, which a real file system
/// may do. What a sync asks for is only noted: the machine beneath does not lose power, so nothing waits for its disk.
///
/// Any thread. Outlives the stores on it, which the shared_ptr in their options sees to.
class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FaultFileSystem();

  /// Which operations fail: those that match all that is given, after `skip` of them, `count` times.
  struct Rule {
    std::optional<FileKind> file = {};
    std::optional<Operation> operation = {};
    uint64_t skip = 0;
    uint64_t count = UINT64_MAX;
    Failure failure = Failure::kIo;
  };
  void fail(Rule rule) EXCLUDES(mutex_);
  /// Removes all rules.
  void heal() EXCLUDES(mutex_);
  /// Operations that writing consists of, until now; and how many of them failed.
  uint64_t operations() const EXCLUDES(mutex_);
  uint64_t failures() const EXCLUDES(mutex_);

  /// From now on, or after so many operations, nothing reaches the disk: the machine has stopped, and what RocksDB
  /// still does fails.
  void cut_power(uint64_t after = 0) EXCLUDES(mutex_);
  /// With every store closed: takes back what was not durable, and the power is on again. Of the unsynced bytes of each
  /// file, the first `kept` (0 to 1) had reached the disk by themselves; of those written over others, that share of
  /// the pages, spread over all of them.
  void restore_power(double kept = 0) EXCLUDES(mutex_);

  const char* Name() const override { return "faults"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override;
  /// For files that are written over: each write counts as an append.
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* context) override;

 private:
  class File;
  class OverwrittenFile;
  class Directory;
  /// What was there before it was written over, a page or a part of one.
  struct Overwritten {
    uint64_t offset = 0;
    std::string before;
  };
  /// Of a file that was written through here.
  struct Extent {
    uint64_t size = 0;
    uint64_t synced = 0;
  };
  /// A name whose directory has not been synced since it was made.
  struct NewName {
    std::string path;
    std::optional<std::string> before;  ///< what the name stood for; nothing for a new one
  };

  /// What becomes of the operation: nothing when it may happen.
  std::optional<Failure> failure_of(const std::string& path, Operation operation) EXCLUDES(mutex_);
  rocksdb::IOStatus admit(const std::string& path, Operation operation) EXCLUDES(mutex_);
  void on_overwriting(const std::string& path, uint64_t offset, size_t bytes) EXCLUDES(mutex_);
  size_t overwritten(const std::string& path) EXCLUDES(mutex_);
  void on_overwritten_synced(const std::string& path, size_t count) EXCLUDES(mutex_);
  void on_appended(const std::string& path, uint64_t bytes) EXCLUDES(mutex_);
  void on_truncated(const std::string& path, uint64_t size) EXCLUDES(mutex_);
  void on_synced(const std::string& path, uint64_t size) EXCLUDES(mutex_);
  void on_directory_synced(const std::string& path) EXCLUDES(mutex_);
  uint64_t size_of(const std::string& path) EXCLUDES(mutex_);
  void add_name(const std::string& path, std::optional<std::string> before) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<Rule> rules_ GUARDED_BY(mutex_);
  uint64_t operations_ GUARDED_BY(mutex_) = 0;
  uint64_t failures_ GUARDED_BY(mutex_) = 0;
  uint64_t power_until_ GUARDED_BY(mutex_) = UINT64_MAX;  ///< of operations_
  std::map<std::string, Extent> extents_ GUARDED_BY(mutex_);
  std::map<std::string, std::vector<Overwritten>> overwritten_ GUARDED_BY(mutex_);  ///< unsynced, in order
  std::vector<NewName> new_names_ GUARDED_BY(mutex_);                               ///< in order
};

}  // namespace millrace::tests
