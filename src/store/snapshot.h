#pragma once

#include <rocksdb/db.h>

#include <array>
#include <atomic>
#include <memory>

#include "store/store.h"

namespace millrace::store {

using TableHandles = std::array<rocksdb::ColumnFamilyHandle*, static_cast<size_t>(Table::kCount)>;

/// A RocksDB snapshot. `live` counts them, so that a store that is destroyed before its snapshots is caught.
class RocksSnapshot final : public Snapshot {
 public:
  RocksSnapshot(rocksdb::DB* db, const TableHandles& tables, std::atomic<int>& live);
  ~RocksSnapshot() override;

  Result<std::optional<Bytes>> get(Table table, ByteView key) const override;
  std::unique_ptr<Cursor> scan(Table table, ByteView lower, ByteView upper) const override;

 private:
  rocksdb::DB* db_;
  const TableHandles& tables_;
  std::atomic<int>& live_;
  const rocksdb::Snapshot* snapshot_;
};

}  // namespace millrace::store
