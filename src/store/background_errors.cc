#include "store/background_errors.h"

namespace millrace::store {
namespace {

std::string_view name_of(rocksdb::BackgroundErrorReason reason) {
  switch (reason) {
    case rocksdb::BackgroundErrorReason::kFlush:
    case rocksdb::BackgroundErrorReason::kFlushNoWAL:
      return "a flush";
    case rocksdb::BackgroundErrorReason::kCompaction:
      return "a compaction";
    case rocksdb::BackgroundErrorReason::kWriteCallback:
      return "a write";
    case rocksdb::BackgroundErrorReason::kMemTable:
      return "a write to memory";
    case rocksdb::BackgroundErrorReason::kManifestWrite:
    case rocksdb::BackgroundErrorReason::kManifestWriteNoWAL:
      return "a write of the manifest";
  }
  return "background work";
}

}  // namespace

std::string BackgroundErrors::reason() const {
  MutexLock lock(mutex_);
  return reason_;
}

void BackgroundErrors::latch(const std::string& what) {
  MutexLock lock(mutex_);
  if (failed()) return;
  reason_ = what;
  failed_.store(true, std::memory_order_release);
}

void BackgroundErrors::OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) {
  latch(std::string(name_of(reason)) + " failed: " + error->ToString());
}

}  // namespace millrace::store
