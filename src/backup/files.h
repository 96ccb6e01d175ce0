#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "backup/backup.h"

/// Walking, hashing and copying the files of a backup.
namespace millrace::backup {

/// Relative paths with '/', in order; regular files only. Errors: kIo FILE_IO, kCorruption BACKUP_DAMAGED for anything
/// that is neither file nor directory.
Result<std::vector<std::string>> files_of(const std::filesystem::path& root);

/// SHA-256 in hex. With `to`, writes the bytes there as well, and syncs. Errors: kIo FILE_IO, kUnavailable STOPPING.
Result<std::string> digest(const std::filesystem::path& file, const std::filesystem::path* to,
                           const Progress& progress);

/// SHA256SUMS: digest by path.
using Digests = std::map<std::string, std::string>;
std::string format_digests(const Digests& digests);
/// Errors: kCorruption BACKUP_DAMAGED.
Result<Digests> parse_digests(std::string_view text);

std::string format_info(const Info& info);
Result<Info> parse_info(std::string_view text);

/// Whole, at most 64 MiB. Errors: kIo FILE_IO, kCorruption BACKUP_DAMAGED.
Result<std::string> read_text(const std::filesystem::path& file);

/// fsync of every directory below `root`, and of itself.
Status sync_tree(const std::filesystem::path& root);

tl::unexpected<Error> damaged(std::string message);

}  // namespace millrace::backup
