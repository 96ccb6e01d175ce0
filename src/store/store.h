#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "store/table.h"

namespace rocksdb {
class FileSystem;
}

/// The RocksDB facade: tables, one writer, snapshots. Nothing outside src/store includes rocksdb/.
/// Facts behind the settings: docs/storage.md.
namespace millrace::store {

/// What on-disk format this binary writes. docs/format-compat.md says what older and newer binaries do with it.
inline constexpr uint32_t kFormatVersion = 2;

struct Options {
  std::filesystem::path directory;
  /// RocksDB's file system; null is the machine's. Tests inject faults here. Owned by the store from then on.
  std::shared_ptr<rocksdb::FileSystem> file_system;
  /// Bytes kept back on disk: writes are refused while less than this would be free afterwards.
  uint64_t reserve_bytes = 256ull << 20;
  /// Write-ahead log bound: past it memtables are flushed, so that replay after a crash stays short.
  uint64_t max_wal_bytes = 64ull << 20;
  /// The same bound in rows, because many small rows replay far slower than few large ones.
  uint64_t max_wal_rows = 400'000;
  /// Size of the file of zeros that is kept ready to become the next write-ahead log, which makes a sync cheaper; 0
  /// keeps none. Only where every write is kSync: what of an unsynced write reaches the disk may then have gaps.
  uint64_t prepared_wal_bytes = 0;
  uint64_t block_cache_bytes = 32ull << 20;
  /// Free bytes of the file system that holds `directory`; empty asks the machine. Tests replace it.
  std::function<uint64_t()> free_bytes;
  /// Opens although less can be recovered than the witness page vouches for, or the page is missing or damaged, and
  /// begins a new epoch. Of a damaged write-ahead log, what comes before the damage is kept; damaged files of tables
  /// are refused all the same. Only on an operator's word: what is missing stays missing.
  bool accept_loss = false;
};

enum class Durability {
  kSync,  ///< on disk (fdatasync returned) before write() returns
  kAsync  ///< in the page cache: survives a crash of the process, not of the machine
};

/// What a write is for.
enum class Purpose {
  kGrow,
  kFreeSpace  ///< it erases more than it writes, so it may use a part of what is kept back
};

/// An ordered list of changes that is applied whole or not at all. Not thread-safe.
class WriteBatch {
 public:
  WriteBatch();
  ~WriteBatch();
  WriteBatch(WriteBatch&&) noexcept;
  WriteBatch& operator=(WriteBatch&&) noexcept;

  void put(Table table, ByteView key, ByteView value);
  /// One value from two pieces, without joining them first.
  void put(Table table, ByteView key, ByteView value_head, ByteView value_tail);
  void erase(Table table, ByteView key);
  /// Removes every key in [from, to).
  void erase_range(Table table, ByteView from, ByteView to);
  void clear();

  uint64_t rows() const;
  uint64_t bytes() const;
  bool empty() const { return rows() == 0; }

 private:
  friend class RocksStore;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A consistent state of all tables. Cheap to take, safe to read from any thread; holds disk space back
/// while it lives, so nobody keeps one for long. Must not outlive its Store.
class Snapshot {
 public:
  virtual ~Snapshot() = default;

  /// The value, or nullopt when the key is absent. Errors: kCorruption (STORE_DAMAGED) naming table and key, kIo.
  virtual Result<std::optional<Bytes>> get(Table table, ByteView key) const = 0;

  /// Walks keys in [lower, upper) in order. `upper` may be empty: to the table's end. See Cursor.
  virtual std::unique_ptr<class Cursor> scan(Table table, ByteView lower, ByteView upper) const = 0;
};

/// Positions on keys within the bounds given to scan(). Starts nowhere: call a seek first. The snapshot must outlive
/// it. Not thread-safe.
class Cursor {
 public:
  virtual ~Cursor() = default;
  virtual void seek(ByteView key) = 0;           ///< first key >= `key`
  virtual void seek_for_prev(ByteView key) = 0;  ///< last key <= `key`
  virtual void seek_to_first() = 0;
  virtual void seek_to_last() = 0;
  virtual void next() = 0;
  virtual void prev() = 0;
  virtual bool valid() const = 0;
  virtual ByteView key() const = 0;    ///< valid until the cursor moves
  virtual ByteView value() const = 0;  ///< valid until the cursor moves
  /// Must be looked at when valid() turns false: damage is never the end of the data.
  virtual Status status() const = 0;
};

/// What opening found; for the start-up log line, /v1/node and tests.
struct OpenReport {
  bool created = false;
  bool clean_stop = false;          ///< the last owner closed the store properly
  uint64_t recovered_sequence = 0;  ///< last sequence number found
  uint64_t witnessed_sequence = 0;  ///< last sequence number known to have been synced
  uint64_t wal_bytes = 0;           ///< of the write-ahead log that was found, and replayed
  uint64_t torn_bytes = 0;          ///< behind it, of a write that was not finished; dropped
};

struct Stats {
  uint64_t wal_bytes = 0;  ///< since the last flush of everything
  uint64_t wal_rows = 0;
  uint64_t free_bytes = 0;  ///< as last looked at
  uint64_t reserve_bytes = 0;
  uint64_t memory_bytes = 0;  ///< memtables, table readers and block cache
  uint64_t disk_bytes = 0;    ///< SST files
};

/// One data directory. Owned by the daemon (or a test). Reads from any thread; write() by one thread at a time:
/// the leader of the commit pipeline, nobody else.
class Store {
 public:
  /// Opens or creates. Errors, each naming the directory and what to do:
  ///   kUnsupported FORMAT_TOO_NEW     written by a newer binary; nothing was touched
  ///   kCorruption  STORE_DAMAGED      RocksDB refused, or less was recovered than the witness page vouches for
  ///   kUnavailable STORE_IN_USE       another process holds it
  ///   kUnavailable DISK_RESERVE       too little space to open safely
  ///   kIo          FILE_IO           permission, read-only, missing parent ...
  static Result<std::unique_ptr<Store>> open(Options options);
  virtual ~Store() = default;

  /// Applies the batch. Errors:
  ///   kUnavailable DISK_RESERVE    refused before anything was written; heals when space is freed
  ///   kUnknown     STORE_UNKNOWN   RocksDB failed: the batch may or may not be there after a restart. From then on
  ///                                failed() is true and every write answers this; the process is to be restarted.
  virtual Status write(WriteBatch& batch, Durability durability, Purpose purpose = Purpose::kGrow) = 0;

  /// Whether there is room for writes that are not to free space; looks at the disk again when the last one was
  /// refused. By the writer. Errors: DISK_RESERVE.
  virtual Status room() = 0;

  /// True after an indeterminate write. Never becomes false again in this process.
  virtual bool failed() const = 0;

  virtual std::shared_ptr<const Snapshot> snapshot() const = 0;

  /// RocksDB's last sequence number: every row of a batch takes one. Stable between writes.
  virtual uint64_t last_sequence() const = 0;

  /// last_sequence() when the oldest snapshot that is still held was taken; UINT64_MAX when there is none.
  virtual uint64_t oldest_snapshot_sequence() const = 0;

  /// A consistent copy made of hard links where possible; `to` must not exist. Safe while writes go on.
  virtual Status checkpoint(const std::filesystem::path& to) = 0;

  /// Flushes every table, so that the next open replays nothing, and records the clean stop. Idempotent.
  /// The destructor does not do this: a Store that is dropped without close() looks like a crash.
  virtual Status close() = 0;

  /// Removes whole files inside ranges already erased (retention). Best effort. Snapshots do not hold such files: not
  /// before oldest_snapshot_sequence() has passed the erasure.
  virtual Status drop_files_in_range(Table table, ByteView from, ByteView to) = 0;

  virtual const OpenReport& open_report() const = 0;
  virtual Stats stats() const = 0;

  /// Checks the key/value checksums of every SST and the witness page. For tools and the background scrub. Errors:
  /// kCorruption.
  virtual Status verify() const = 0;

  /// "7.8.3" of the linked library.
  static std::string rocksdb_version();
};

/// The state directory's exclusive lock, so that a second daemon on it is told so instead of reading on.
class DirectoryLock {
 public:
  /// Errors: kUnavailable STORE_IN_USE naming the other process, kIo FILE_IO.
  static Result<DirectoryLock> acquire(const std::filesystem::path& directory);
  DirectoryLock(DirectoryLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace millrace::store
