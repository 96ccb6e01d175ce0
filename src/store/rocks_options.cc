#include "store/rocks_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>

#include "store/table_footer.h"

namespace millrace::store {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

/// How a table is used decides its settings.
enum class Shape {
  kLog,      ///< large values, appended and read in key order
  kPoint,    ///< small rows, found by exact key, often absent
  kJournal,  ///< many small rows, written once, read by prefix, deleted one by one
  kQueue     ///< rows are consumed from the front: deletions pile up before the first live row
};

Shape shape_of(Table table) {
  switch (table) {
    case Table::kLog:
    case Table::kLogCompacted:
    case Table::kLedgerBlocks:
    case Table::kLedgerUndo:
      return Shape::kLog;
    case Table::kCheckpoints:
      return Shape::kJournal;
    case Table::kTimers:
    case Table::kLifecycles:
      return Shape::kQueue;
    default:
      return Shape::kPoint;
  }
}

rocksdb::BlockBasedTableOptions block_options(Shape shape, const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.format_version = kTableFormatVersion;
  table.checksum = static_cast<rocksdb::ChecksumType>(kTableChecksum);
  // Index and filter blocks count against the cache: otherwise their memory grows with the data, without bound.
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.block_size = shape == Shape::kLog ? 16 * kKiB : 4 * kKiB;
  if (shape != Shape::kLog) {
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.whole_key_filtering = true;
  }
  return table;
}

rocksdb::ColumnFamilyOptions table_options(Shape shape, const std::shared_ptr<rocksdb::Cache>& cache, bool compact) {
  rocksdb::ColumnFamilyOptions cf;
  cf.table_factory.reset(rocksdb::NewBlockBasedTableFactory(block_options(shape, cache)));
  cf.compression = rocksdb::kLZ4Compression;
  cf.enable_blob_files = false;
  cf.max_write_buffer_number = 3;
  // Data that does not change is not rewritten for its age.
  cf.ttl = 0;
  cf.periodic_compaction_seconds = 0;
  cf.disable_auto_compactions = !compact;
  switch (shape) {
    case Shape::kLog:
      cf.write_buffer_size = 64 * kMiB;
      cf.arena_block_size = 1 * kMiB;
      break;
    case Shape::kJournal:
      cf.write_buffer_size = 16 * kMiB;
      cf.arena_block_size = 256 * kKiB;
      cf.memtable_whole_key_filtering = true;
      cf.memtable_prefix_bloom_size_ratio = 0.02;
      break;
    case Shape::kQueue:
      cf.write_buffer_size = 8 * kMiB;
      cf.arena_block_size = 64 * kKiB;
      // A file with many deletions close together is compacted soon: a seek has to step over each of them.
      cf.table_properties_collector_factories.push_back(rocksdb::NewCompactOnDeletionCollectorFactory(1024, 512, 0.5));
      break;
    case Shape::kPoint:
      cf.write_buffer_size = 8 * kMiB;
      cf.arena_block_size = 64 * kKiB;
      cf.memtable_whole_key_filtering = true;
      cf.memtable_prefix_bloom_size_ratio = 0.02;
      break;
  }
  return cf;
}

rocksdb::DBOptions db_options(const Options& options) {
  rocksdb::DBOptions db;
  db.create_if_missing = true;
  // Damage inside the log is refused. Who accepts the loss gets what comes before it, never what comes after a gap.
  db.wal_recovery_mode = options.accept_loss ? rocksdb::WALRecoveryMode::kPointInTimeRecovery
                                             : rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  db.max_open_files = -1;
  db.max_background_jobs = 2;
  // Per table, at each open: 16, the default, starts hundreds of threads.
  db.max_file_opening_threads = 1;
  db.max_total_wal_size = options.max_wal_bytes;
  db.paranoid_checks = true;

  // Each of these has a bug that was fixed only after 7.8.3, or cost throughput when measured.
  db.enable_pipelined_write = false;
  db.unordered_write = false;
  db.wal_compression = rocksdb::kNoCompression;
  db.recycle_log_file_num = 0;
  db.manual_wal_flush = false;
  db.track_and_verify_wals_in_manifest = false;
  db.atomic_flush = false;

  // One writer at a time.
  db.allow_concurrent_memtable_write = false;
  db.enable_write_thread_adaptive_yield = false;

  // A background error is final in this process: no retry in place.
  db.max_bgerror_resume_count = 0;

  db.bytes_per_sync = 1 * kMiB;
  db.compaction_readahead_size = 2 * kMiB;
  db.max_manifest_file_size = 16 * kMiB;
  // Files are deleted by a background thread, not by the reader that held them last.
  db.avoid_unnecessary_blocking_io = true;

  db.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  db.max_log_file_size = 1 * kMiB;
  db.keep_log_file_num = 4;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.skip_stats_update_on_db_open = true;
  return db;
}

std::shared_ptr<rocksdb::Cache> block_cache(size_t bytes) {
  // Few shards: a block is as large as the largest value in it, and must fit into one.
  constexpr int kShardBits = 2;
  return rocksdb::NewLRUCache(bytes, kShardBits);
}

}  // namespace

RocksParts rocks_parts(const Options& options, bool compact) {
  RocksParts parts;
  parts.db = db_options(options);
  if (options.file_system) {
    parts.env = rocksdb::NewCompositeEnv(options.file_system);
    parts.db.env = parts.env.get();
  }
  auto cache = block_cache(options.block_cache_bytes);
  parts.tables.emplace_back(rocksdb::kDefaultColumnFamilyName, table_options(Shape::kQueue, cache, compact));
  for (size_t i = 0; i < kTableNames.size(); ++i)
    parts.tables.emplace_back(std::string(kTableNames[i]),
                              table_options(shape_of(static_cast<Table>(i)), cache, compact));
  return parts;
}

}  // namespace millrace::store
