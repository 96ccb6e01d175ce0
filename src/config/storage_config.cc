#include "config/storage_config.h"

#include "config/section_builder.h"
#include "config/section_tables.h"

namespace millrace::config {

Section storage_section() {
  using C = StorageConfig;
  constexpr uint64_t kKB = 1ull << 10, kMB = 1ull << 20, kGB = 1ull << 30;
  SectionBuilder<C> s("storage", &Config::storage, "The database and the disk it lies on.");
  s.choice("commitDurability", &C::commit_durability,
           {{"sync", CommitDurability::kSync}, {"async", CommitDurability::kAsync}},
           "What acknowledged means: sync, it is on disk; async, it survives a crash of the process but perhaps not of "
           "the machine. "
           "async trades that promise for throughput.");
  s.size(
      "reserveSize", &C::reserve_bytes, 16 * kMB, 1024 * kGB,
      "Disk space that is kept back: writes are refused while less than this is free, before the disk itself is full.");
  s.size("maxWalSize", &C::max_wal_bytes, 4 * kMB, 1 * kGB,
         "Bound of the write-ahead log. A restart after a crash replays at most this much, about 2 s for 64MB of small "
         "records.");
  s.integer("maxWalRows", &C::max_wal_rows, 1'000, 100'000'000,
            "The same bound in rows, because many small rows replay far slower than few large ones.");
  s.boolean(
      "prepareWal", &C::prepare_wal,
      "Keeps a file of half of maxWalSize ready to become the next write-ahead log, because a commit to a file that "
      "need not grow is on disk sooner. Only with commitDurability = sync.");
  s.size("blockCacheSize", &C::block_cache_bytes, 64 * kKB, 256 * kGB, "Memory for blocks read from the database.");
  s.path("backupDirectory", &C::backup_directory,
         "Where backups are made; created when missing. On another disk a backup takes longer, because nothing can be "
         "shared with the database, and survives the loss of this one.")
      .empty_stands_for("backups in the data directory");
  s.integer("maxBackups", &C::max_backups, 1, 10'000,
            "Backups that are kept there; no more is made until one is deleted.");
  return std::move(s).build();
}

}  // namespace millrace::config
