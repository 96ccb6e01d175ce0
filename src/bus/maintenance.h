#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bus/partition_table.h"

/// What happens to record batches after they were written: the two internal operations of the design's section 1.2,
/// trim and replace, and what keeps segments in order. They go through the commit pipeline like Commits and are
/// invisible to domains: no offset ever holds another record than before.
namespace millrace::bus {

/// Raises a log's start to `log_start`, at most to the high watermark. A lower one changes nothing, nor does a
/// partition that is gone.
struct Trim {
  TopicPartition partition;
  uint64_t log_start = 0;
};

/// Puts other batches in the place of the head of a range: the same ones (which empties its segment), or what
/// compaction leaves of them. They hold the offsets up to the last batch's end, from the range's first one or from one
/// at or below the log's start, without a gap.
struct Replace {
  TopicPartition partition;
  SegmentId source;           ///< closed
  uint64_t first_offset = 0;  ///< of the range
  uint64_t source_bytes = 0;  ///< of the batches that are replaced
  std::vector<Bytes> batches;
};

/// Compaction has cleaned the partition's log up to here (PartitionLog::clean_to).
struct Cleaned {
  TopicPartition partition;
  uint64_t to = 0;
};

/// One operation, atomic as a Commit is.
struct Maintenance {
  std::vector<Trim> trims;
  /// All of one log class; at most one of each partition.
  std::vector<Replace> replaces;
  /// Where they write to: a segment that an earlier operation has begun, of the topics' class; absent: a new one.
  std::optional<SegmentId> target;
  std::optional<Cleaned> cleaned;
  /// Closed as they are, if they are still open and have batches.
  std::vector<SegmentId> rolls;
  /// Closed segments in which nothing can be reached any more; others are left alone.
  std::vector<SegmentId> removals;
};

struct MaintenanceReceipt {
  std::optional<SegmentId> target;  ///< that `replaces` wrote to
  uint64_t row_bytes = 0;           ///< of the segments' rows that `replaces` wrote
  std::vector<SegmentId> removed;
};

/// Errors: kConflict LOG_CHANGED when the range is not as one of `replaces` expects it, kNotFound
/// UNKNOWN_TOPIC_OR_PARTITION, kCorruption, and those of every Commit that come from the pipeline itself (commit.h).
using MaintenanceResult = Result<MaintenanceReceipt>;

}  // namespace millrace::bus
