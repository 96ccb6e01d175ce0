#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <vector>

#include "store/store.h"

/// Every RocksDB setting, in one place. The reasons and the measurements behind them: docs/storage.md.
namespace millrace::store {

/// Everything that lives as long as the open database.
struct RocksParts {
  rocksdb::DBOptions db;
  std::vector<rocksdb::ColumnFamilyDescriptor> tables;  ///< "default", then the tables in order of their id
  std::unique_ptr<rocksdb::Env> env;                    ///< only with an injected file system
};

/// `compact` is false when the disk is too full for compactions, which need space before they free any.
RocksParts rocks_parts(const Options& options, bool compact);

}  // namespace millrace::store
