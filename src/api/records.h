#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/topics.h"

/// Producing and reading records as use cases. Answers are JSON text; nothing here blocks but for reading the store.
namespace millrace::api {

/// A body of one produce request holds at most this many: what one Commit may hold bounds the bytes, this the work.
inline constexpr size_t kMaxRecordsPerRequest = 10'000;
/// Header bytes of an Idempotency-Key.
inline constexpr size_t kMaxIdempotencyKeyBytes = 255;

struct ReadRequest {
  std::string topic;
  uint32_t partition = 0;
  std::optional<int64_t> offset;        ///< else the time, else the log's start
  std::optional<int64_t> timestamp_ms;  ///< first record at or after it
  size_t limit = 500;
  size_t max_bytes = 1 << 20;  ///< of record batches; the first batch comes whole
};

/// What a read found; `empty` means that a long poll may wait at `at`.
struct ReadAnswer {
  std::string json;
  bool empty = false;
  bus::WatchedOffset at;
};

/// Positions of a reader of several partitions, as SSE ids carry them: "0:12,1:9".
using Positions = std::vector<std::pair<uint32_t, uint64_t>>;
std::string format_positions(const Positions& positions);
/// Errors: kInvalidArgument INVALID_POSITION.
Result<Positions> parse_positions(std::string_view text);

/// Owned by main; any thread.
class RecordsApi {
 public:
  struct Produced {
    std::string json;  ///< {"offsets":[{"partition","offset"}]}, one for each record, in order
    bool replayed = false;
  };

  RecordsApi(bus::CommitLog& log, const TopicsApi& topics, const Clock& clock)
      : log_(log), topics_(topics), clock_(clock) {}

  /// {"records":[{"key","value","headers","partition","timestamp"}]}: all of them in one Commit. Records without
  /// partition go by their key (murmur2, as Kafka's clients), those without a key together to one partition.
  /// Errors: kNotFound UNKNOWN_TOPIC, UNKNOWN_PARTITION, kInvalidArgument with the field's pointer, those of Commit.
  void produce(std::string_view topic, std::string_view body, std::optional<std::string> idempotency_key,
               std::function<void(Result<Produced>)> reply);

  /// {"records":[..],"nextOffset","highWatermark","logStartOffset"}. Every batch's CRC is checked. Errors: kNotFound,
  /// kInvalidArgument OFFSET_OUT_OF_RANGE, kCorruption LOG_DAMAGED, kUnsupported COMPRESSED_BATCH.
  Result<ReadAnswer> read(const ReadRequest& request) const;

  /// Where a stream starts: "earliest", "latest" or positions. Partitions that a vector does not name start at their
  /// log's start. Errors: of parse_positions, kNotFound UNKNOWN_PARTITION.
  Result<Positions> start_positions(std::string_view topic, std::string_view from) const;

  /// One record for a stream: its JSON, and the positions behind it.
  using Emit = std::function<bool(const std::string& json, const std::string& positions)>;
  /// Emits what lies beyond `positions` and moves them, at most `max_bytes` of batches or until `emit` says false.
  /// True when all partitions are read to the end. Errors: as read(); kNotFound when the topic was deleted.
  Result<bool> stream(const bus::Topic& topic, Positions& positions, size_t max_bytes, const Emit& emit) const;

 private:
  struct Plan;
  Result<Plan> plan(std::string_view topic, std::string_view body, bool idempotent);

  bus::CommitLog& log_;
  const TopicsApi& topics_;
  const Clock& clock_;
  std::atomic<uint32_t> next_keyless_{0};
};

}  // namespace millrace::api
