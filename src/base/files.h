#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

/// Small files that are to be there whole after a crash.
namespace millrace {

/// kIo FILE_IO: "cannot open /data/x: Permission denied", from errno.
tl::unexpected<Error> io_error(std::string_view what, const std::filesystem::path& path);

/// Writes a temporary file beside `path`, syncs it, renames it into place and syncs the directory: after a crash there
/// is the old file or the new one, whole.
Status write_file_durably(const std::filesystem::path& path, std::string_view content);

/// fsync of a directory: makes renames and new names in it durable.
Status sync_directory(const std::filesystem::path& directory);

}  // namespace millrace
