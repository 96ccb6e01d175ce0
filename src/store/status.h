#pragma once

#include <rocksdb/status.h>

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "store/table.h"

/// RocksDB's Status as our Error. What an error means depends on what was being done, hence one function each.
namespace millrace::store {

/// A read of `key`, or of the keys from there on. Damage is kCorruption, everything else kIo: never "absent".
Error read_error(const rocksdb::Status& status, Table table, ByteView key);

/// A failed write: the batch may or may not be there after a restart.
Error unknown_error(std::string_view what);

/// Opening, verifying, copying: `what` names the action and the path.
Error damage_or_io(const rocksdb::Status& status, std::string_view what);

}  // namespace millrace::store
