#include "store/rocks_store.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>

#include "store/column_families.h"
#include "store/slice.h"
#include "store/status.h"
#include "store/write_batch.h"

namespace millrace::store {

OpenDatabase::~OpenDatabase() {
  if (!db) return;
  for (auto& handle : handles) db->DestroyColumnFamilyHandle(handle.release());
  // Does not flush: what is in memory is in the log as well.
  db->Close().PermitUncheckedError();
  db.reset();
}

RocksStore::RocksStore(Options options, OpenDatabase database, std::unique_ptr<SpaceGuard> space)
    : options_(std::move(options)),
      directory_{options_.directory},
      database_(std::move(database)),
      space_(std::move(space)) {
  for (size_t i = 0; i < tables_.size(); ++i) tables_[i] = database_.handles[i + 1].get();
  synced_ = database_.witness->record().sequence;
}

RocksStore::~RocksStore() {
  MILLRACE_ASSERT(live_snapshots_.load(std::memory_order_acquire) == 0, "a store is destroyed before its snapshots");
}

Status RocksStore::write(WriteBatch& batch, Durability durability, Purpose purpose) {
  if (errors().failed()) return tl::unexpected<Error>(unknown_error(errors().reason()));
  if (closed_) return fail(ErrorKind::kUnavailable, "STORE_CLOSED", "the store is closed");
  if (batch.empty()) return {};
  MILLRACE_TRY(space_->admit(batch.bytes(), purpose));
  if (!database_.compacting && !space_->refusing()) resume_compactions();

  rocksdb::WriteOptions options;
  options.sync = durability == Durability::kSync;
  rocksdb::Status status = db().Write(options, &batch.impl_->batch);
  if (!status.ok()) {
    errors().latch("a write failed: " + status.ToString());
    return tl::unexpected<Error>(unknown_error(errors().reason()));
  }
  if (durability == Durability::kSync) {
    uint64_t sequence = last_sequence();
    database_.witness->advance(sequence);
    synced_.store(sequence, std::memory_order_release);
  }
  bound_wal(batch);
  return {};
}

/// Begins a flush of every table when half of a bound is reached: while that half is being flushed the other half may
/// fill, so that what a restart has to replay stays within the bound.
void RocksStore::bound_wal(const WriteBatch& written) {
  uint64_t bytes = wal_bytes_.fetch_add(written.bytes(), std::memory_order_relaxed) + written.bytes();
  uint64_t rows = wal_rows_.fetch_add(written.rows(), std::memory_order_relaxed) + written.rows();
  if (bytes < options_.max_wal_bytes / 2 && rows < options_.max_wal_rows / 2) return;
  rocksdb::FlushOptions flush;
  // Only switches the memtables, which is quick; a background thread writes them.
  flush.wait = false;
  flush.allow_write_stall = true;
  rocksdb::Status status = db().Flush(flush, all_tables());
  if (status.IsTryAgain()) return;  // Too much is being flushed already: the next write asks again.
  if (!status.ok()) errors().latch("starting a flush failed: " + status.ToString());
  wal_bytes_.store(0, std::memory_order_relaxed);
  wal_rows_.store(0, std::memory_order_relaxed);
}

/// The disk was nearly full when the store was opened, and is not any more.
void RocksStore::resume_compactions() {
  database_.compacting = true;
  rocksdb::Status status = db().EnableAutoCompaction(all_tables());
  if (!status.ok()) errors().latch("resuming compactions failed: " + status.ToString());
}

std::shared_ptr<const Snapshot> RocksStore::snapshot() const {
  return std::make_shared<RocksSnapshot>(&db(), tables_, live_snapshots_);
}

std::vector<rocksdb::ColumnFamilyHandle*> RocksStore::all_tables() const {
  return {tables_.begin(), tables_.end()};
}

Status RocksStore::close() {
  if (closed_.exchange(true)) return {};
  if (errors().failed()) return tl::unexpected<Error>(unknown_error(errors().reason()));
  rocksdb::FlushOptions flush;
  flush.allow_write_stall = true;
  rocksdb::Status status = db().Flush(flush, all_tables());
  if (!status.ok()) return tl::unexpected<Error>(damage_or_io(status, "cannot flush the store at its end"));
  rocksdb::CancelAllBackgroundWork(&db(), true);
  if (errors().failed()) return tl::unexpected<Error>(unknown_error(errors().reason()));
  WitnessRecord last = database_.witness->record();
  last.sequence = last_sequence();
  last.state = WitnessState::kClosed;
  return database_.witness->write(last, Witness::Sync::kToDisk);
}

Status RocksStore::drop_files_in_range(Table table, ByteView from, ByteView to) {
  rocksdb::Slice begin = slice(from), end = slice(to);
  rocksdb::RangePtr range(&begin, &end);
  rocksdb::Status status =
      rocksdb::DeleteFilesInRanges(&db(), tables_[static_cast<size_t>(table)], &range, 1, /*include_end=*/false);
  if (status.ok()) return {};
  return tl::unexpected<Error>(damage_or_io(status, fmt::format("cannot drop files of table {}", name_of(table))));
}

uint64_t RocksStore::oldest_snapshot_sequence() const {
  if (live_snapshots_.load(std::memory_order_acquire) == 0) return UINT64_MAX;
  uint64_t oldest = 0;
  db().GetIntProperty(tables_[0], rocksdb::DB::Properties::kOldestSnapshotSequence, &oldest);
  return oldest;
}

Stats RocksStore::stats() const {
  Stats stats;
  stats.wal_bytes = wal_bytes_.load(std::memory_order_relaxed);
  stats.wal_rows = wal_rows_.load(std::memory_order_relaxed);
  stats.free_bytes = space_->free_bytes();
  stats.reserve_bytes = space_->reserve_bytes();
  auto sum = [&](const std::string& property) {
    uint64_t value = 0;
    db().GetAggregatedIntProperty(property, &value);
    return value;
  };
  uint64_t cached = 0;
  db().GetIntProperty(tables_[0], rocksdb::DB::Properties::kBlockCacheUsage, &cached);
  stats.memory_bytes =
      sum(rocksdb::DB::Properties::kSizeAllMemTables) + sum(rocksdb::DB::Properties::kEstimateTableReadersMem) + cached;
  stats.disk_bytes = sum(rocksdb::DB::Properties::kTotalSstFilesSize);
  return stats;
}

Status RocksStore::verify() const {
  MILLRACE_TRY(database_.witness->verify());
  rocksdb::Status status = db().VerifyChecksum(rocksdb::ReadOptions());
  if (status.ok()) return {};
  return tl::unexpected<Error>(
      damage_or_io(status, fmt::format("a file of the store in {} is damaged", directory_.database().string())));
}

}  // namespace millrace::store
