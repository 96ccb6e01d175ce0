#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bus/commit.h"

/// What domain code sees of the bus: Commits go in, Views come out. Nothing here says what carries them.
namespace millrace::bus {

struct Row {
  Bytes value;
  Version version = kAbsent;
};

struct PartitionState {
  uint64_t log_start = 0;       ///< first offset that can be read
  uint64_t high_watermark = 0;  ///< last durable offset + 1
  uint64_t bytes = 0;           ///< of the record batches kept
};

/// One consistent state: rows and high watermarks that belong together. Immutable, any thread. Holds storage back
/// while it lives: take one per request, keep none.
class View {
 public:
  virtual ~View() = default;

  /// Errors: kCorruption, kIo from the store.
  virtual Result<std::optional<Row>> get(store::Table table, ByteView key) const = 0;

  /// Rows whose key starts with `prefix` and is greater than `after` (empty: from the start), in key order, at most
  /// `limit`.
  virtual Result<std::vector<std::pair<Bytes, Row>>> list(store::Table table, ByteView prefix, ByteView after,
                                                          size_t limit) const = 0;

  virtual std::optional<PartitionState> partition(const TopicPartition& partition) const = 0;

  /// Whole record batches, the first one holding `offset`; at least one however large, then as many as fit in
  /// `max_bytes`. Empty at the high watermark. Errors: kNotFound UNKNOWN_TOPIC_OR_PARTITION, kInvalidArgument
  /// OFFSET_OUT_OF_RANGE below the log's start or above the high watermark, kCorruption.
  virtual Result<std::vector<Bytes>> fetch(const TopicPartition& partition, uint64_t offset,
                                           size_t max_bytes) const = 0;

  /// The offset of the first record whose timestamp is at least `timestamp_ms`; of the first record of its batch when
  /// that is compressed; the high watermark when there is none. Errors: as fetch().
  virtual Result<uint64_t> offset_for_time(const TopicPartition& partition, int64_t timestamp_ms) const = 0;
};

/// What every carrier answers alike. UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE.
std::string describe(const TopicPartition& partition);
tl::unexpected<Error> unknown_partition(const TopicPartition& partition);
tl::unexpected<Error> offset_out_of_range(const TopicPartition& partition, uint64_t offset,
                                          const PartitionState& state);

/// A position that somebody waits to see passed.
struct WatchedOffset {
  TopicPartition partition;
  uint64_t offset = 0;
};

/// A registered wish to be woken; dropping it withdraws the wish. A wake-up that has begun on another thread may still
/// be running then, so what it captures must be kept alive by it.
class Watch {
 public:
  virtual ~Watch() = default;
};

/// Carries Commits. Thread-safe.
class CommitLog {
 public:
  virtual ~CommitLog() = default;

  /// Never blocks. Commit::done is called once, also when the commit is refused at once.
  virtual void submit(Commit commit) = 0;

  /// Waits for the answer; `commit.done` is not called. For threads that may block (never an io thread). Afterwards
  /// view() shows the commit.
  virtual CommitResult submit_and_wait(Commit commit) = 0;

  /// The newest state. A commit that was answered is in it.
  virtual std::shared_ptr<const View> view() const = 0;

  /// Calls `wake` at most once: as soon as one of the partitions has a record at its `offset` or after it, or is not
  /// there (any more). At once, on the calling thread, when that is so already: nobody needs to look again after
  /// registering. Otherwise on the thread that carried the commit, after view() shows it; it must not block.
  /// Errors: kExhausted TOO_MANY_WATCHES, then `wake` is never called.
  virtual Result<std::unique_ptr<Watch>> watch(std::vector<WatchedOffset> offsets, std::function<void()> wake) = 0;

  /// Node-wide partition ids for a new topic's row (TopicRow::partitions), never given twice.
  virtual uint32_t allocate_partition_ids(uint32_t count) = 0;
};

}  // namespace millrace::bus
