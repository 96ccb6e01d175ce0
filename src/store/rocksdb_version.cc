#include <rocksdb/version.h>

#include "store/store.h"

namespace millrace::store {

std::string Store::rocksdb_version() {
  return rocksdb::GetRocksVersionAsString(true);
}

}  // namespace millrace::store
