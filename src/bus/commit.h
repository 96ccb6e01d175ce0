#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "bus/home.h"
#include "store/table.h"

/// The Commit: the one way to make something durable (design, section 1). Everything in it becomes visible together,
/// or nothing does.
namespace millrace::bus {

/// The commit sequence number that last wrote a row. Compared for equality only; 0 means the row is absent.
using Version = uint64_t;
inline constexpr Version kAbsent = 0;

/// A lease is a row of table meta in the home, holding an epoch. The Commit is refused unless the epoch is this one.
struct Fence {
  Bytes lease;  ///< the row's key, home prefix included
  uint64_t epoch = 0;
};

/// A row that was read, and must not have changed since.
struct Condition {
  store::Table table;
  Bytes key;
  Version version = kAbsent;
};

struct Change {
  store::Table table;
  Bytes key;
  std::optional<Bytes> value;  ///< absent: delete
};

/// A durable timer, unique by (home, due, id).
struct TimerChange {
  int64_t due_ms = 0;
  Bytes id;
  std::optional<Bytes> payload;  ///< absent: cancel
};

/// A partition of a topic, by the topic's UUID, so that a topic deleted and made again is another one.
struct TopicPartition {
  Uuid topic;
  uint32_t partition = 0;
  friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
};

/// Longest note beside a committed offset; Kafka's default.
inline constexpr size_t kMaxOffsetMetadataBytes = 4'096;

struct ConsumedOffset {
  std::string group;
  TopicPartition from;
  uint64_t next_offset = 0;
  int32_t leader_epoch = -1;  ///< -1: not known
  Bytes metadata = {};        ///< the member's note, kept as it is
  int64_t commit_ms = 0;      ///< wall time
};

/// A record batch (record_batch.h) for a partition anywhere. Its offsets are assigned when it is committed.
struct Append {
  TopicPartition to;
  Bytes batch;
};

/// How long an idempotency key is good for, to the millisecond.
inline constexpr int64_t kIdempotencyWindowMs = 24ll * 3600 * 1000;

/// Makes a Commit happen at most once: a second one with the same scope and key answers the first one's receipt.
/// Digests are 32 bytes, so that keys of any length take the same room.
struct IdempotencyKey {
  Bytes scope_and_key;  ///< digest of route, caller and key
  Bytes request;        ///< digest of the request: another request under the same key is refused
  Bytes answer;         ///< the domain's part of the answer, returned with the receipt
};

struct CommitReceipt {
  struct Appended {
    TopicPartition to;
    uint64_t base_offset = 0;
    uint32_t records = 0;
  };
  Version version = kAbsent;      ///< of the rows it wrote; kAbsent when it has no state, timers or offsets
  std::vector<Appended> appends;  ///< in the order of Commit::appends
  Bytes answer;                   ///< IdempotencyKey::answer of the first commit with the key
  bool replayed = false;          ///< the idempotency key was known: nothing was written now
};

/// Errors (nothing is written, except that kUnknown may be either):
///   kFenced   FENCED                      a fence's epoch is not the lease's
///   kConflict CONDITION_FAILED            a condition's row changed; the message names table, key and both versions
///   kConflict IDEMPOTENCY_KEY_REUSED      the key was used for another request
///   kNotFound UNKNOWN_TOPIC_OR_PARTITION  an append's target is not (or no longer) there
///   kInvalidArgument CORRUPT_MESSAGE ...  an append is no sound record batch (record_batch.h)
///   kInvalidArgument MESSAGE_TOO_LARGE    a batch is over the topic's max.message.bytes
///   kInvalidArgument INVALID_RECORD       a record without a key for a compacted topic
///   kInvalidArgument COMMIT_TOO_LARGE     over the maximum size of a Commit
///   kInvalidArgument OFFSET_METADATA_TOO_LARGE  a note beside an offset is over kMaxOffsetMetadataBytes
///   kExhausted TOO_MANY_TOPICS, TOO_MANY_PARTITIONS  the node's bounds, met by a new topic's row
///   kExhausted IDEMPOTENCY_FULL           too many idempotency keys are being remembered
///   kInternal HOME_VIOLATED               a key lies outside the home: a bug of the caller
///   kExhausted COMMIT_QUEUE_FULL          too many commits wait; retry later
///   kUnavailable DISK_RESERVE, STOPPING   not now
///   kUnknown  COMMIT_UNKNOWN              durable or not, only a restart will tell
using CommitResult = Result<CommitReceipt>;

struct Commit {
  explicit Commit(Home h) : home(std::move(h)) {}

  Home home;
  std::vector<Fence> fences;
  std::vector<Condition> conditions;
  std::vector<Change> state;
  std::vector<TimerChange> timers;
  std::vector<ConsumedOffset> offsets;
  std::vector<Append> appends;
  std::optional<IdempotencyKey> idempotency;
  /// Called exactly once, in the order in which commits were taken, on the thread that carried the commit. Must not
  /// block and must not throw. Caches may change in here, not before.
  std::function<void(CommitResult)> done;
};

/// Whether it has rows of its own, which get a version; appends and idempotency keys have none.
bool writes_rows(const Commit& commit);

/// Whether all it does is delete rows, as a topic's: that is done also while the disk's reserve refuses writes.
bool frees_space(const Commit& commit);

/// Bytes that a Commit counts for in queues and against the maximum size.
size_t size_of(const Commit& commit);

/// What can be checked without reading anything: home, size, digests. See CommitResult for the errors.
Status check_commit(const Commit& commit, size_t max_bytes);

/// Keys of the rows that a Commit writes besides `state`.
Bytes timer_key(const Home& home, int64_t due_ms, ByteView id);
Bytes offset_key(const Home& home, const ConsumedOffset& offset);
/// The row of an offset, as OffsetRow.
Bytes offset_row(const ConsumedOffset& offset);

}  // namespace millrace::bus
