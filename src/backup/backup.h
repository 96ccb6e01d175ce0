#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

/// A backup is a directory that holds everything a node needs to begin anew, on this machine or another:
///   data/                     a copy of the data directory, consistent, never opened
///   config-node.properties    the configuration that was in force, every key
///   backup-info               what it is, as `key = value` lines
///   SHA256SUMS                a digest for each file, as sha256sum(1) writes and checks them
/// While it is made, and while it is removed, its name ends in `.incomplete` and it holds a file `unfinished`. Whoever
/// makes or clears backups in a directory holds a lock on it (flock), so several nodes may share one. Nothing here
/// knows of RocksDB: the copy is somebody else's, and a backup can be checked and restored where no daemon runs.
namespace millrace::backup {

struct Info {
  std::string name;
  std::string node;        ///< the node's name
  std::string created_at;  ///< RFC 3339
  std::string version;     ///< of the daemon
  uint64_t files = 0;      ///< those that SHA256SUMS lists, but backup-info
  uint64_t bytes = 0;
};

/// 1 to 64 of [A-Za-z0-9._-], not beginning with a dot, not ending in ".incomplete". Errors: kInvalidArgument
/// INVALID_BACKUP_NAME.
Status check_name(std::string_view name);

/// How far it is, in bytes; false ends it with kUnavailable STOPPING.
using Progress = std::function<bool(uint64_t bytes)>;

struct Request {
  std::filesystem::path directory;  ///< of all backups; created if need be
  Info info;                        ///< name, node, created_at, version
  std::string config;
  /// Copies the data directory to where it is told, which does not exist yet: at once when that is on the same file
  /// system.
  std::function<Status(const std::filesystem::path& to)> copy_data;
  /// On the data's file system. When `directory` lies on another one, copy_data copies here first, so that the long way
  /// is accounted for by Progress like everything else; cleared before and after. Empty: never.
  std::filesystem::path staging;
};

/// Makes a backup, after clear(), and removes what it has made when it fails. May take long; one at a time for one
/// directory. Errors: kConflict BACKUP_RUNNING when another process is at it,
/// kAlreadyExists BACKUP_EXISTS, kIo FILE_IO, those of copy_data.
Result<Info> create(const Request& request, const Progress& progress);

/// Those in `directory`, by name; what is no backup or an incomplete one is left out. Errors: kIo FILE_IO.
Result<std::vector<Info>> list(const std::filesystem::path& directory);
/// Errors: kNotFound UNKNOWN_BACKUP when it is none, kCorruption BACKUP_DAMAGED.
Result<Info> read_info(const std::filesystem::path& backup);
/// From now on it is incomplete, whatever happens; its files go with the next clear(). Quick. Errors: kNotFound
/// UNKNOWN_BACKUP, kIo FILE_IO.
Status remove(const std::filesystem::path& backup);
/// Removes all incomplete ones: what remove(), a kill or a failure left, nothing else of the kind. Does nothing while
/// another process makes one there. Errors: kIo FILE_IO.
Status clear(const std::filesystem::path& directory);

/// Reads everything. Errors: as read_info(); kCorruption BACKUP_DAMAGED naming the first file that is missing, not the
/// one written, or one too many; kIo.
Result<Info> verify(const std::filesystem::path& backup, const Progress& progress);

/// Copies `data/` to `to`, which must not exist or be empty, and compares each digest on the way; the backup is only
/// read. The configuration lies in `to` as config-node.properties.restored. On failure nothing is left in `to`.
/// Errors: as verify(); kAlreadyExists DIRECTORY_NOT_EMPTY.
Result<Info> restore(const std::filesystem::path& backup, const std::filesystem::path& to, const Progress& progress);

}  // namespace millrace::backup
