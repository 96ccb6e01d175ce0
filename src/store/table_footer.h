#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace millrace::store {

/// RocksDB's format of table files (SST) that this binary writes: format_version and checksum type of its options.
inline constexpr uint32_t kTableFormatVersion = 5;
inline constexpr uint8_t kTableChecksum = 4;  ///< rocksdb::kXXH3

/// Looks at the footer of every table file, its only part without a checksum. A flipped bit in it makes RocksDB read
/// all blocks of the file by the rules of another format, and a build with assertions aborts instead of reporting that.
/// A file without RocksDB's magic number at its end is left to RocksDB: it may be one that a crash left unfinished and
/// nobody names. Errors: kCorruption STORE_DAMAGED naming the file, kIo FILE_IO. The message is a sentence part.
Status check_table_footers(const std::filesystem::path& database);

}  // namespace millrace::store
