#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "bus/commit.h"
#include "store/store.h"

namespace millrace::bus {

/// What the sequencer remembers of idempotency keys: a row for each, in buckets of twelve hours that are dropped whole.
/// A key is good for exactly kIdempotencyWindowMs, so the current bucket and the two before it are kept. One group's
/// additions are a draft, as in LogWriter. By the pipeline's leader only.
class IdempotencyKeys {
 public:
  static constexpr int64_t kBucketMs = 12ll * 3600 * 1000;
  static constexpr uint32_t kBucketsBefore = 2;

  /// Reads how many keys each bucket has. Errors: of the store.
  static Result<IdempotencyKeys> load(const store::Store& store, const Clock& clock, size_t max_keys);

  /// The receipt of the commit that used the key first, `replayed` set; nullopt when the key is new. `snapshot` shows
  /// everything before this group. Errors: kConflict IDEMPOTENCY_KEY_REUSED, kExhausted IDEMPOTENCY_FULL, of the store.
  Result<std::optional<CommitReceipt>> find(const IdempotencyKey& key, const store::Snapshot& snapshot) const;

  void remember(const IdempotencyKey& key, const CommitReceipt& receipt, store::WriteBatch& batch);
  /// Adds what the group owes besides the rows: counts, and the end of old buckets.
  void finish_group(store::WriteBatch& batch);
  void accept();
  void drop();

  size_t count() const;

 private:
  IdempotencyKeys(const Clock& clock, size_t max_keys) : clock_(&clock), max_keys_(max_keys) {}
  /// Never goes back, though the clock may.
  uint32_t current_bucket() const;
  Result<CommitReceipt> replay(const IdempotencyKey& key, ByteView row) const;

  const Clock* clock_;
  size_t max_keys_;
  std::map<uint32_t, uint64_t> counts_;  ///< keys by bucket

  std::unordered_map<Bytes, Bytes> drafted_;  ///< digest -> row
  uint32_t drafted_bucket_ = 0;               ///< of the whole group, whatever the clock does meanwhile
  std::optional<std::map<uint32_t, uint64_t>> drafted_counts_;
};

}  // namespace millrace::bus
