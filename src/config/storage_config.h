#pragma once

#include <cstdint>
#include <filesystem>

namespace millrace::config {

enum class CommitDurability {
  kSync,  ///< acknowledged means on disk
  kAsync  ///< acknowledged means in the page cache: survives a crash of the process, not of the machine
};

/// [storage]: the database and its disk. Keys and their meaning: storage_config.cc.
struct StorageConfig {
  CommitDurability commit_durability = CommitDurability::kSync;
  uint64_t reserve_bytes = 256ull << 20;
  uint64_t max_wal_bytes = 64ull << 20;
  uint64_t max_wal_rows = 400'000;
  bool prepare_wal = true;
  uint64_t block_cache_bytes = 32ull << 20;
  std::filesystem::path backup_directory;  ///< absolute once loaded
  uint32_t max_backups = 16;
};

}  // namespace millrace::config
