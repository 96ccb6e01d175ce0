#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "bus/partition_table.h"
#include "bus/topic.h"
#include "store/store.h"

namespace millrace::bus {

struct UuidHash {
  size_t operator()(const Uuid& id) const noexcept {
    size_t bits;
    __builtin_memcpy(&bits, id.bytes.data() + 8, sizeof bits);
    return bits;
  }
};
/// Immutable once shared; copied when a topic comes, changes or goes.
using TopicMap = std::unordered_map<Uuid, std::shared_ptr<const Topic>, UuidHash>;

/// The segment of a class that new batches go to.
struct OpenSegment {
  uint32_t number = 0;
  int64_t created_ms = 0;
  uint64_t bytes = 0;
  /// Ids of partitions with batches in it, maybe more than once; only the first `member_count` are meant. Shared with
  /// drafts of the segment, which append: what a dropped draft appended is cut off by the next one.
  std::shared_ptr<std::vector<uint32_t>> members;
  size_t member_count = 0;
};

/// Rows that nobody can reach any more, to be erased some at a time.
struct Garbage {
  store::Table table;
  Bytes from, to;
};

/// What is known of the log without reading it. Derived from the store when it opens (recover), and kept in step by
/// LogWriter. Owned by the commit pipeline and touched by its leader only.
struct LogState {
  std::shared_ptr<const TopicMap> topics = std::make_shared<TopicMap>();
  size_t partition_count = 0;
  PartitionTable partitions;
  std::unordered_map<LogClass, OpenSegment> open;
  uint32_t next_segment = 1;  ///< its number, whatever its class: none comes again
  std::vector<Garbage> garbage;
  uint32_t next_partition_id = 1;
  int32_t leader_epoch = 0;
};

/// Reads the state out of a store that was just opened. Unless write_open_segments() was the last write, the open
/// segments are read whole, at most one segment's bytes for each class. Errors: kCorruption LOG_DAMAGED naming the
/// place, kIo.
Result<LogState> recover_log(const store::Store& store, const TopicSettings& defaults);

/// Adds the rows to `batch` that spare the next start from reading the open segments. For a clean stop.
void write_open_segments(const LogState& state, store::WriteBatch& batch);

/// Adds the rows that the first write after a start must carry: the leader epoch, and that the open segments' rows are
/// no longer to be believed. Not a write of its own, so that a node whose disk is full starts and can be read.
void write_started(const LogState& state, store::WriteBatch& batch);

}  // namespace millrace::bus
