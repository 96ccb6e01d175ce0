#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

/// How the write-ahead logs of a database end, looked at before RocksDB opens it (the format is RocksDB's: blocks of
/// 32 KiB, in them records of checksum, length, type and payload). A log made from a prepared file ends in zeros, and a
/// write that was not synced may have reached it in part, in any order of its pages; RocksDB takes the latter for
/// damage. Cutting both off leaves a log that ends with its last whole write.
namespace millrace::store {

struct WalTail {
  std::filesystem::path file;
  uint64_t size = 0;           ///< of the file
  uint64_t end = 0;            ///< one past the last whole write
  uint64_t last_sequence = 0;  ///< of the last whole write; 0 without one
  /// Bytes behind `end` up to the zeros: of a write that nobody was told of.
  uint64_t torn_bytes = 0;
  /// Why this cannot be a torn write: what is behind `end` is not the last write, or fewer than `witnessed` are before
  /// it. A sentence part, with the place; empty when all is well.
  std::string damage;
};

/// Of each log file in `database`, oldest first. `witnessed`: the last sequence number known to have been synced. Reads
/// only. Errors: kIo FILE_IO.
Result<std::vector<WalTail>> read_wal_tails(const std::filesystem::path& database, uint64_t witnessed);

/// Shortens the file to `end`, durably; not a damaged one. Errors: kIo FILE_IO.
Status cut_off(const WalTail& tail);

}  // namespace millrace::store
