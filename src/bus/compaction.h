#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "bus/record_batch.h"

/// Compaction of one partition: of the records of each key the last one stays (cleanup.policy=compact, Kafka's log
/// cleaner). Offsets keep their records; what goes leaves a hole inside a batch.
namespace millrace::bus {

/// The last offset of each key of a stretch of a log. Bounded: a stretch with more keys is cleaned in several passes.
class LastOffsets {
 public:
  explicit LastOffsets(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Offsets ascend. False when there is no room for another key, unless it is `needed`.
  bool add(ByteView key, uint64_t offset, bool needed = false);
  /// Whether a later record has that key.
  bool is_overtaken(ByteView key, uint64_t offset) const;

 private:
  static constexpr size_t kEntryBytes = 80;

  const size_t max_bytes_;
  size_t bytes_ = 0;
  std::unordered_map<Bytes, uint64_t> offsets_;
};

/// What becomes of a run of batches. Small ones are joined; every offset of theirs lies in a batch of the result.
/// Compressed, control and transactional batches stay as they are, and records without a key stay. So do tombstones
/// behind a compressed or transactional batch, which may hold what they delete.
class BatchCleaner {
 public:
  struct Rule {
    const LastOffsets& last;
    int64_t now_ms;               ///< the node's
    int64_t delete_retention_ms;  ///< how long a tombstone stays from when it is first seen here
  };
  explicit BatchCleaner(Rule rule) : rule_(rule) {}

  /// Whether add() would change anything but join batches. Each batch of the log is shown to one of the two, in order.
  /// Errors: kCorruption.
  Result<bool> changes(ByteView batch);
  /// Errors: kCorruption; then nothing was added.
  Status add(ByteView batch);
  /// The result of all since the last call.
  std::vector<Bytes> finish();

  /// When the first tombstone that was kept may go; nullopt: there is none.
  std::optional<int64_t> next_horizon_ms() const { return next_horizon_; }

 private:
  static constexpr size_t kMaxJoinedBytes = 16 * 1024;
  static constexpr uint64_t kMaxSpan = 1u << 30;  ///< offsets of a batch; their deltas are 32 bits

  /// What of a batch stays.
  struct Kept {
    std::vector<RecordView> records;
    std::optional<int64_t> horizon_ms;  ///< of its tombstones
    bool all = true;
  };
  Result<Kept> keep(const BatchInfo& info, ByteView batch) const;
  void note(const std::optional<int64_t>& horizon_ms);
  void note_opaque(const BatchInfo& info);
  bool joins(const BatchInfo& info, const Kept& kept, size_t bytes) const;
  void begin(const BatchInfo& info, const std::optional<int64_t>& horizon_ms);
  void flush(int16_t attributes = 0);

  const Rule rule_;
  std::vector<Bytes> done_;
  std::optional<int64_t> next_horizon_;
  bool opaque_before_ = false;  ///< a batch that was not looked into

  // The batch that is being built.
  bool building_ = false;
  BatchBuilder builder_;
  int64_t base_offset_ = 0;
  int64_t next_offset_ = 0;
  int32_t leader_epoch_ = 0;
  std::optional<int64_t> horizon_ms_;
};

}  // namespace millrace::bus
