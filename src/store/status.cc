#include "store/status.h"

#include <fmt/format.h>

namespace millrace::store {
namespace {

/// Keys are short; a longer one is cut so that a message stays a message.
constexpr size_t kShownKeyBytes = 64;

std::string shown(ByteView key) {
  std::string hex = to_hex(key.substr(0, kShownKeyBytes));
  return key.size() > kShownKeyBytes ? hex + ".." : hex;
}

}  // namespace

Error read_error(const rocksdb::Status& status, Table table, ByteView key) {
  if (status.IsCorruption())
    return {ErrorKind::kCorruption, "STORE_DAMAGED",
            fmt::format("table {} is damaged at or after key {}: {}", name_of(table), shown(key), status.ToString())};
  return {ErrorKind::kIo, "FILE_IO",
          fmt::format("cannot read table {} at or after key {}: {}", name_of(table), shown(key), status.ToString())};
}

Error unknown_error(std::string_view what) {
  return {
      ErrorKind::kUnknown, "STORE_UNKNOWN",
      fmt::format("the store has failed and refuses writes until this process is restarted; what it was writing may "
                  "or may not be there then: {}",
                  what)};
}

Error damage_or_io(const rocksdb::Status& status, std::string_view what) {
  if (status.IsCorruption())
    return {ErrorKind::kCorruption, "STORE_DAMAGED", fmt::format("{}: {}", what, status.ToString())};
  if (status.IsNoSpace())
    return {ErrorKind::kUnavailable, "DISK_RESERVE",
            fmt::format("{}: {}; free some space on that file system", what, status.ToString())};
  return {ErrorKind::kIo, "FILE_IO", fmt::format("{}: {}", what, status.ToString())};
}

}  // namespace millrace::store
