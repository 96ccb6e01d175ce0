#pragma once

#include <rocksdb/slice.h>

#include "base/bytes.h"

namespace millrace::store {

/// Ours and RocksDB's name for the same thing: bytes somebody else owns.
inline rocksdb::Slice slice(ByteView bytes) {
  return {bytes.data(), bytes.size()};
}
inline ByteView view(const rocksdb::Slice& bytes) {
  return {bytes.data(), bytes.size()};
}

}  // namespace millrace::store
