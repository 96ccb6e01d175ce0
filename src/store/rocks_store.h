#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <memory>

#include "store/background_errors.h"
#include "store/data_directory.h"
#include "store/snapshot.h"
#include "store/space_guard.h"
#include "store/store.h"
#include "store/witness.h"

namespace millrace::store {

/// What opening found and hands over. Closes RocksDB when it goes, in the right order.
struct OpenDatabase {
  explicit OpenDatabase(DirectoryLock held) : lock(std::move(held)) {}
  OpenDatabase(OpenDatabase&&) = default;
  ~OpenDatabase();

  DirectoryLock lock;
  std::shared_ptr<rocksdb::FileSystem> file_system;
  std::unique_ptr<rocksdb::Env> env;
  std::shared_ptr<BackgroundErrors> errors;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<std::unique_ptr<rocksdb::ColumnFamilyHandle>> handles;  ///< "default", then the tables
  std::optional<Witness> witness;
  bool compacting = true;  ///< false: opened on a nearly full disk, until there is room again
  OpenReport report;
};

/// The Store on RocksDB. Opening is in open.cc.
class RocksStore final : public Store {
 public:
  RocksStore(Options options, OpenDatabase database, std::unique_ptr<SpaceGuard> space);
  ~RocksStore() override;

  Status write(WriteBatch& batch, Durability durability, Purpose purpose) override;
  Status room() override { return space_->admit(0, Purpose::kGrow); }
  bool failed() const override { return errors().failed(); }
  std::shared_ptr<const Snapshot> snapshot() const override;
  uint64_t oldest_snapshot_sequence() const override;
  uint64_t last_sequence() const override { return db().GetLatestSequenceNumber(); }
  Status checkpoint(const std::filesystem::path& to) override;
  Status close() override;
  Status drop_files_in_range(Table table, ByteView from, ByteView to) override;
  const OpenReport& open_report() const override { return database_.report; }
  Stats stats() const override;
  Status verify() const override;

 private:
  rocksdb::DB& db() const { return *database_.db; }
  BackgroundErrors& errors() const { return *database_.errors; }
  std::vector<rocksdb::ColumnFamilyHandle*> all_tables() const;
  void bound_wal(const WriteBatch& written);
  void resume_compactions();

  Options options_;
  DataDirectory directory_;
  OpenDatabase database_;
  TableHandles tables_{};
  std::unique_ptr<SpaceGuard> space_;
  mutable std::atomic<int> live_snapshots_{0};
  std::atomic<uint64_t> wal_bytes_{0}, wal_rows_{0};  ///< since the last flush of everything was begun
  std::atomic<uint64_t> synced_{0};                   ///< what the witness vouches for
  std::atomic<bool> closed_{false};
};

}  // namespace millrace::store
