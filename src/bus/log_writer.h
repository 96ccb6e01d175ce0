#pragma once

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "bus/group_batch.h"
#include "bus/log_state.h"
#include "bus/maintenance.h"
#include "bus/watches.h"

namespace millrace::proto {
class SegmentRow;
}

namespace millrace::bus {

/// Bounds and sizes of the log.
struct LogOptions {
  uint64_t segment_bytes = 64ull << 20;
  int64_t segment_ms = 24ll * 3600 * 1000;
  size_t max_topics = 10'000;
  size_t max_partitions = 100'000;
  TopicSettings topic_defaults;
};

/// One group's changes to the LogState, as a draft over it: topics that come and go, batches that get their places.
/// accept() when the group is durable, drop() when it was refused. By the pipeline's leader only.
class LogWriter {
 public:
  LogWriter(LogState& state, const Clock& clock, LogOptions options)
      : state_(state), clock_(clock), options_(options) {}

  /// As this draft has it; null when there is none.
  std::shared_ptr<const Topic> topic(const Uuid& id) const;
  /// Null when the topic has no such partition. Valid until the draft changes.
  const PartitionLog* partition(uint32_t id) const;

  /// How many topics and partitions there would be with one more topic of `partitions`, `replaced` gone.
  /// Errors: kExhausted TOO_MANY_TOPICS, TOO_MANY_PARTITIONS.
  Status check_room(const std::vector<Topic>& coming, const std::vector<std::shared_ptr<const Topic>>& going) const;

  void put_topic(const Topic& topic, store::WriteBatch& batch);
  void remove_topic(const Topic& topic, store::WriteBatch& batch);

  /// Gives the batch its offsets. It is written with finish_group(), perhaps joined to others. The target has been
  /// checked. Answers the base offset.
  uint64_t append(const Topic& topic, uint32_t partition, Bytes record_batch, store::WriteBatch& batch);

  /// All of it, or on failure nothing. `snapshot` shows the state. See MaintenanceResult for the errors.
  MaintenanceResult maintain(Maintenance& work, const store::Snapshot& snapshot, store::WriteBatch& batch);

  /// Bytes that finish_group() will add.
  uint64_t pending_bytes() const { return pending_bytes_; }
  /// Adds the batches that wait, and erasures of garbage, a bounded number.
  void finish_group(store::WriteBatch& batch);

  /// The draft becomes the state. What moved is for the watches.
  std::vector<Watches::Moved> accept();
  void drop();

 private:
  static constexpr size_t kGarbagePerGroup = 64;

  /// The batch of a partition that may still grow, and where it will lie.
  struct Pending {
    LogClass log_class = 0;
    uint32_t segment = 0;
    std::optional<int64_t> append_time_ms;
    GroupBatch batch;
  };
  void write(uint32_t partition_id, Pending& pending, store::WriteBatch& batch);
  void erase_garbage(store::WriteBatch& batch);
  PartitionLog& touch(uint32_t id);
  OpenSegment& open_segment(LogClass log_class, const Topic& topic, store::WriteBatch& batch);
  bool is_full(LogClass log_class, const OpenSegment& segment, const Topic& topic) const;
  uint32_t take_segment_number(store::WriteBatch& batch);
  OpenSegment begin_segment(LogClass log_class, store::WriteBatch& batch);
  void roll(LogClass log_class, const OpenSegment& segment, store::WriteBatch& batch);
  /// Null when the class has none.
  const OpenSegment* find_open(LogClass log_class) const;

  // Of maintain().
  using SegmentRows = std::map<SegmentId, proto::SegmentRow>;
  Status read_segment_row(const SegmentId& segment, const store::Snapshot& snapshot, SegmentRows& rows) const;
  uint64_t put_segment_row(const SegmentId& segment, const proto::SegmentRow& row, store::WriteBatch& batch);
  /// What replace() has decided and not drafted yet.
  struct Replaced {
    std::optional<SegmentId> target;
    SegmentRows rows;
    std::set<SegmentId> changed;
    std::map<uint32_t, PartitionLog> logs;
  };
  Status replace(const Replace& work, const Maintenance& all, Replaced& so_far) const;
  uint64_t put_replaced(const Maintenance& work, Replaced replaced, store::WriteBatch& batch);
  void trim(const Trim& work, store::WriteBatch& batch);
  void note_cleaned(const Cleaned& work, store::WriteBatch& batch);
  void roll_early(const SegmentId& segment, store::WriteBatch& batch);
  bool remove_segment(const SegmentId& segment, const proto::SegmentRow& row, store::WriteBatch& batch);

  LogState& state_;
  const Clock& clock_;
  const LogOptions options_;

  // The draft.
  std::unordered_map<Uuid, std::shared_ptr<const Topic>, UuidHash> topics_;  ///< null: removed
  std::map<uint32_t, std::optional<PartitionLog>> partitions_;               ///< nullopt: removed
  std::map<uint32_t, Pending> pending_;                                      ///< by partition id
  uint64_t pending_bytes_ = 0;
  std::unordered_map<LogClass, std::optional<OpenSegment>> open_;  ///< nullopt: the class has none
  std::map<SegmentId, Bytes> segment_rows_;                        ///< those of closed segments that were changed
  uint32_t next_segment_ = 0;                                      ///< 0: unchanged
  std::vector<Garbage> garbage_;
  std::vector<TopicPartition> appended_, removed_;
  size_t erased_ = 0;
  uint32_t next_partition_id_ = 0;  ///< 0: unchanged
};

/// The row of a segment, open or closed, with the ranges that `find` knows of it.
Bytes segment_row(LogClass log_class, const OpenSegment& segment, std::optional<int64_t> closed_ms,
                  const std::function<const PartitionLog*(uint32_t)>& find);

}  // namespace millrace::bus
