#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "bus/topic.h"
#include "store/table.h"

/// Where record batches lie in the store: keys, and the classes that decide which segment a batch goes to.
/// docs/storage.md, "The log".
namespace millrace::bus {

/// Topics that are removed alike share segments, so that whole segments die together: a class for each bucket of
/// retention.ms, and a class of its own for a topic with retention.bytes or compaction.
using LogClass = uint32_t;

/// A segment is known by its class and number; the number alone never comes again.
struct SegmentId {
  LogClass log_class = 0;
  uint32_t number = 0;
  friend auto operator<=>(const SegmentId&, const SegmentId&) = default;
};
/// Own classes are these bits and the topic's first partition id.
inline constexpr LogClass kOwnClass = 0x4000'0000;
inline constexpr LogClass kCompactedClass = 0x8000'0000;
static_assert(kMaxPartitionId < kOwnClass, "classes do not meet");

/// The class that a topic's new batches go to. A changed configuration takes effect with the next batch; what lies in
/// another class stays there.
LogClass log_class_of(const Topic& topic);
store::Table table_of(LogClass log_class);

/// [class u32][segment u32][partition id u32][base offset u64], big-endian.
inline constexpr size_t kLogKeyBytes = 20;
Bytes log_key(LogClass log_class, uint32_t segment, uint32_t partition_id, uint64_t base_offset);

struct LogKey {
  LogClass log_class = 0;
  uint32_t segment = 0;
  uint32_t partition_id = 0;
  uint64_t base_offset = 0;
};
/// `key` has kLogKeyBytes.
LogKey parse_log_key(ByteView key);
/// Every row of the segment lies in [first, second).
std::pair<Bytes, Bytes> segment_bounds(const SegmentId& segment);

/// Rows of table meta that are the log's own; no home's prefix begins with a letter.
inline constexpr ByteView kSegmentRowPrefix = "log/segment/";
Bytes segment_row_key(LogClass log_class, uint32_t segment);
inline constexpr ByteView kNextPartitionIdKey = "log/next-partition-id";  ///< u32
inline constexpr ByteView kNextSegmentKey = "log/next-segment";           ///< u32
inline constexpr ByteView kLeaderEpochKey = "log/leader-epoch";           ///< u32; rises after each unclean start
/// The offset that a partition's log starts at, u64. Absent: at 0.
inline constexpr ByteView kLogStartPrefix = "log/start/";
Bytes log_start_key(uint32_t partition_id);
/// What compaction has cleaned of a partition, u64. Absent: nothing.
inline constexpr ByteView kCleanToPrefix = "log/clean/";
Bytes clean_to_key(uint32_t partition_id);

/// There only between a clean stop and the first write after it: the rows of the open segments say what they hold.
inline constexpr ByteView kOpenSegmentsKey = "log/open-segments";

/// A row of state on disk: [version u64][payload].
inline constexpr size_t kVersionBytes = 8;

}  // namespace millrace::bus
