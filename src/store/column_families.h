#pragma once

#include <rocksdb/db.h>

#include "store/table.h"

/// How tables map to RocksDB's column families.
namespace millrace::store {

/// RocksDB insists on a column family "default" with id 0. It stays empty; the tables follow in order, because they
/// are created in order and never dropped. Opening checks this.
constexpr uint32_t column_family_id(Table table) {
  return static_cast<uint32_t>(table) + 1;
}

/// A handle that knows only the id: all that a WriteBatch asks for. So a batch can be filled without the store at hand.
rocksdb::ColumnFamilyHandle* id_handle(Table table);

}  // namespace millrace::store
