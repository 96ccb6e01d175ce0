#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace millrace::store {

/// Removes what is kept ready, and what was being made. `path` is Prepared::path.
void remove_prepared_wal(const std::string& path);

/// Gives the write-ahead log files whose blocks are on disk already, filled with zeros, so that a sync of a commit has
/// only the commit's own bytes to write: for a file that grows the file system writes its journal as well, which takes
/// about as long again (docs/storage.md has figures). One such file is kept ready, and made anew in the background.
///
/// A log then ends in zeros, and what of it was not synced may be there in any order: wal_tail.h mends both before
/// RocksDB opens it. Hence only for a store whose every write is synced.
///
/// Called by RocksDB's threads; owned by the store.
class WalFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  struct Prepared {
    /// Of the file that is kept ready; on the same file system as the logs, and whole when it has this name.
    std::string path;
    /// The file that is there may be used: whoever made it came to an orderly end. After a loss of power it might have
    /// been in use already.
    bool reuse = false;
    /// How large. A log that outgrows it goes on as a growing file.
    uint64_t bytes = 0;
    /// Asked before each; while it says no, logs are growing files.
    std::function<bool()> has_room;
  };
  /// Makes a small one at once when none is ready, for the log that the opening begins.
  WalFileSystem(std::shared_ptr<rocksdb::FileSystem> base, Prepared prepared);
  ~WalFileSystem() override;

  const char* Name() const override { return "wal"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override;
  /// Without the zeros, so that a checkpoint copies what there is.
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions& options, uint64_t* size,
                                rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;

 private:
  class Log;
  using Size = std::shared_ptr<std::atomic<uint64_t>>;

  void run();
  rocksdb::IOStatus prepare(uint64_t bytes);
  rocksdb::IOStatus fill(const std::string& path, uint64_t bytes);
  bool stopping();
  /// Whether the file that was ready has the name `path` now.
  bool take(const std::string& path, rocksdb::IODebugContext* context);
  void order_next();

  const Prepared prepared_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false;
  bool wanted_ = false;
  bool stopping_ = false;
  std::map<std::string, Size> sizes_;  ///< of the logs made here
  std::thread thread_;
};

}  // namespace millrace::store
