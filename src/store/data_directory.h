#pragma once

#include <filesystem>

#include "base/result.h"
#include "store/store.h"

/// The layout of a data directory and the checks before anything in it is opened:
///
///     lock     held (flock) while a store is open; names the process
///     format   which on-disk format this is; read before anything else
///     witness  how far the database was synced (witness.h)
///     next-wal a file of zeros that becomes the next write-ahead log (wal_file_system.h)
///     db/      RocksDB's own
namespace millrace::store {

struct DataDirectory {
  std::filesystem::path root;
  std::filesystem::path format() const { return root / "format"; }
  std::filesystem::path witness() const { return root / "witness"; }
  std::filesystem::path next_wal() const { return root / "next-wal"; }
  std::filesystem::path database() const { return root / "db"; }
  /// RocksDB has been created in it: CURRENT is the last file that creation writes.
  bool has_database() const;
};

/// Creates the directory if only its last component is missing, refuses a newer format without touching anything, takes
/// the lock, refuses a directory with somebody else's files, and writes `format` into a new one.
/// Errors: FORMAT_TOO_NEW, STORE_IN_USE, FILE_IO, STORE_DAMAGED (unreadable `format`); the message says what to do.
Result<DirectoryLock> claim(const DataDirectory& directory);

/// A directory of an older format has this binary's from now on. Once it has been opened, and before anything is
/// written that an older binary would misread. Errors: FILE_IO.
Status raise_format(const DataDirectory& directory);

/// What `format` holds for this binary.
std::string format_file_content();

}  // namespace millrace::store
