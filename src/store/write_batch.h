#pragma once

#include <rocksdb/write_batch.h>

#include "store/store.h"

namespace millrace::store {

/// Every row carries a checksum from here to the memtable, so that a flipped bit in memory is an error and not data.
inline constexpr size_t kProtectionBytesPerKey = 8;

struct WriteBatch::Impl {
  // clear() keeps the memory of both the rows and their checksums.
  rocksdb::WriteBatch batch{0, 0, kProtectionBytesPerKey, 0};
};

}  // namespace millrace::store
