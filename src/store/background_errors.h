#pragma once

#include <rocksdb/listener.h>

#include <atomic>
#include <string>

#include "base/mutex.h"

namespace millrace::store {

/// Latches the first failure of a write, a flush or a compaction, and keeps RocksDB from trying again by itself: after
/// a failed fsync nobody knows what is on disk, so the only way on is a restart. Any thread.
class BackgroundErrors final : public rocksdb::EventListener {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// What failed first.
  std::string reason() const EXCLUDES(mutex_);
  void latch(const std::string& what) EXCLUDES(mutex_);

  const char* Name() const override { return "millrace"; }
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override;
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool* auto_recovery) override {
    *auto_recovery = false;
  }

 private:
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  std::string reason_ GUARDED_BY(mutex_);
};

}  // namespace millrace::store
