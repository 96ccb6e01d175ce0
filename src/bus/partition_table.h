#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bus/commit_log.h"
#include "bus/log_layout.h"

namespace millrace::bus {

/// An unbroken run of one partition's offsets that lies in one segment.
struct SegmentRange {
  LogClass log_class = 0;
  uint32_t segment = 0;
  uint64_t first_offset = 0;
  uint64_t next_offset = 0;
  int64_t max_timestamp_ms = 0;
  uint64_t bytes = 0;

  bool empty() const { return next_offset == first_offset; }
};

/// Where one partition's record batches lie: ranges in offset order, the newest apart because it is the one that grows.
struct PartitionLog {
  using Ranges = std::vector<SegmentRange>;

  uint64_t log_start = 0;
  uint64_t high_watermark = 0;
  uint64_t bytes = 0;
  /// Below it each key has at most one record; of the partitions of compacted topics.
  uint64_t clean_to = 0;
  std::shared_ptr<const Ranges> older;  ///< null when there are none
  SegmentRange newest;

  size_t ranges() const { return (older ? older->size() : 0) + (newest.empty() ? 0 : 1); }
  const SegmentRange& range(size_t i) const { return older && i < older->size() ? (*older)[i] : newest; }
  /// Adds what was appended at the high watermark. `to` is the segment; offsets, time and bytes are the batch's.
  void add(const SegmentRange& appended);
  /// Raises the log's start, and forgets the ranges that lie wholly below it.
  void trim(uint64_t start);
  /// The head of a range has moved: the range of `source`'s segment that begins at its first offset loses what
  /// lies before `moved.next_offset`, `source_bytes` of it, to `moved`. False when there is no such range, or when
  /// `moved` leaves out offsets that can be read.
  bool move(const SegmentRange& source, uint64_t source_bytes, const SegmentRange& moved);
  PartitionState state() const { return {log_start, high_watermark, bytes}; }
};

/// Every partition by its node-wide id. A value that shares what two of its copies have in common: a copy costs
/// nothing, and a change copies only the way to what it changes. A copy that nobody changes is safe to read from any
/// thread.
class PartitionTable {
 public:
  PartitionTable();

  /// Null when there is none.
  const PartitionLog* find(uint32_t id) const;

  /// What changes: the new value, or nullopt to remove it.
  using Changes = std::vector<std::pair<uint32_t, std::optional<PartitionLog>>>;
  /// Ids must ascend.
  void apply(Changes changes);

 private:
  static constexpr uint32_t kLeafBits = 4, kNodeBits = 6;
  struct Leaf {
    std::array<std::optional<PartitionLog>, 1u << kLeafBits> logs;
  };
  struct Node {
    std::array<std::shared_ptr<const Leaf>, 1u << kNodeBits> leaves;
  };
  using Root = std::vector<std::shared_ptr<const Node>>;

  std::shared_ptr<const Root> root_;
};

}  // namespace millrace::bus
