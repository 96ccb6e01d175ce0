#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

/// Kafka's RecordBatch v2 (magic 2), the only shape in which records lie on disk and travel: KIP-98 and the protocol
/// guide's "Record Batch". Base offset and leader epoch lie before the CRC's range, so that giving a batch its offsets
/// leaves the CRC alone.
namespace millrace::bus {

/// Bytes before the first record.
inline constexpr size_t kBatchHeaderBytes = 61;
/// "No producer": batches of producers without idempotence.
inline constexpr int64_t kNoProducerId = -1;

enum class Compression : uint8_t { kNone = 0, kGzip = 1, kSnappy = 2, kLz4 = 3, kZstd = 4 };
enum class TimestampType : uint8_t { kCreateTime = 0, kLogAppendTime = 1 };

/// One record's parts, as views into memory that somebody else keeps.
struct RecordView {
  struct Header {
    ByteView name;
    std::optional<ByteView> value;
  };
  int64_t offset = 0;
  int64_t timestamp_ms = 0;
  std::optional<ByteView> key;
  std::optional<ByteView> value;  ///< absent: a tombstone on a compacted topic
  std::vector<Header> headers;
};

/// What the fixed part of a batch says. All lengths in bytes.
struct BatchInfo {
  int64_t base_offset = 0;
  size_t total_bytes = 0;  ///< of the whole batch, its length field included
  int32_t leader_epoch = 0;
  uint32_t crc = 0;
  int16_t attributes = 0;
  int32_t last_offset_delta = 0;
  int64_t base_timestamp_ms = 0;
  int64_t max_timestamp_ms = 0;
  int64_t producer_id = kNoProducerId;
  int16_t producer_epoch = -1;
  int32_t base_sequence = -1;
  int32_t record_count = 0;

  int64_t last_offset() const { return base_offset + last_offset_delta; }
  int64_t next_offset() const { return last_offset() + 1; }
  Compression compression() const { return static_cast<Compression>(attributes & 7); }
  TimestampType timestamp_type() const { return static_cast<TimestampType>((attributes >> 3) & 1); }
  bool is_transactional() const { return (attributes & 0x10) != 0; }
  bool is_control() const { return (attributes & 0x20) != 0; }
  /// KIP-534: when compaction may drop the batch's tombstones; it lies where the base timestamp was.
  std::optional<int64_t> delete_horizon_ms() const {
    return (attributes & kHasDeleteHorizon) != 0 ? std::optional(base_timestamp_ms) : std::nullopt;
  }
  static constexpr int16_t kHasDeleteHorizon = 0x40;
};

/// Reads the fixed part of the batch at the start of `bytes`, which may go on behind it. Checks lengths, the magic byte
/// and the counts against each other, not the CRC. Compaction leaves batches with fewer records than offsets, even
/// none. Errors: kInvalidArgument CORRUPT_MESSAGE, UNSUPPORTED_MAGIC.
Result<BatchInfo> read_batch_info(ByteView bytes);

/// read_batch_info, and the CRC, and that nothing follows the batch. What check_append() (topic.h) asks of a new one
/// comes on top.
Result<BatchInfo> check_batch(ByteView batch);

/// Gives a batch its place in the log. `batch` has at least kBatchHeaderBytes.
void assign_offset(Bytes& batch, int64_t base_offset, int32_t leader_epoch);
/// Sets LogAppendTime and the maximum timestamp, and the CRC anew. Only for batches whose CRC has been checked.
void assign_append_time(Bytes& batch, int64_t now_ms);

/// Walks the records of an uncompressed batch without copying. Every length is checked before it is used.
///   for (RecordReader reader(*info, batch); reader.more();) { MILLRACE_TRY(reader.next(record)); ... }
class RecordReader {
 public:
  /// `batch` must be the bytes that `info` was read from. A compressed batch answers kUnsupported at the first next().
  RecordReader(const BatchInfo& info, ByteView batch);

  bool more() const { return read_ < info_.record_count; }
  /// The next record, its views into the batch. Errors: kCorruption CORRUPT_RECORD naming offset and fault, also when
  /// bytes are left over behind the last record; kUnsupported COMPRESSED_BATCH.
  Status next(RecordView& record);

 private:
  BatchInfo info_;
  ByteView rest_;
  int32_t read_ = 0;
};

/// Builds one uncompressed batch of at least one record. Reusable after finish(). Not thread-safe.
class BatchBuilder {
 public:
  /// Appends a record; its `offset` is ignored: offsets follow the order of calls.
  void add(const RecordView& record);
  int32_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  /// Bytes of the batch that finish() would make now.
  size_t bytes() const { return kBatchHeaderBytes + records_.size(); }
  /// The batch, with base offset 0. There must be a record.
  Bytes finish();

  // For compaction, which leaves holes and moves records to other batches.

  /// As add(), at an offset that is `offset_delta` behind the batch's first and greater than the last one's.
  void add_at(int32_t offset_delta, const RecordView& record);
  /// All deltas of time are counted from here, instead of from the first record's. Before the first record.
  void set_base_timestamp(int64_t base_ms) { base_timestamp_ms_ = base_ms, has_base_timestamp_ = true; }
  /// A batch that ends with that offset, perhaps without a record.
  Bytes finish_at(int64_t base_offset, int32_t leader_epoch, int32_t last_offset_delta, int16_t attributes);

 private:
  Bytes records_;
  Bytes scratch_;
  int32_t count_ = 0;
  int64_t base_timestamp_ms_ = 0;
  int64_t max_timestamp_ms_ = 0;
  bool has_base_timestamp_ = false;
};

/// The offset of the batch's first record at or after offset `from` whose timestamp is at least `timestamp_ms`, or
/// nullopt. A compressed batch answers with `from`, at least its first record's. Errors: kCorruption.
Result<std::optional<uint64_t>> first_offset_at(ByteView batch, int64_t timestamp_ms, uint64_t from);

/// The most bytes that add() can need for this record, for limits before building.
size_t record_bytes_bound(const RecordView& record);

}  // namespace millrace::bus
