#include "bus/group_batch.h"

#include <algorithm>

namespace millrace::bus {
namespace {

/// One whose records may as well lie in another batch. What a producer numbered or compressed stays as it came.
bool is_plain(const BatchInfo& info) {
  return info.attributes == 0 && info.producer_id == kNoProducerId && info.record_count == info.last_offset_delta + 1;
}

/// Beyond any clock, and the difference of two of them could not be written.
bool is_far(int64_t timestamp_ms) {
  constexpr int64_t kFar = int64_t{1} << 61;
  return timestamp_ms < -kFar || timestamp_ms > kFar;
}

/// Nullopt when one cannot be read: in a batch of its own it harms nobody else's.
std::optional<std::vector<RecordView>> read_records(const BatchInfo& info, ByteView batch) {
  std::vector<RecordView> records;
  records.reserve(static_cast<size_t>(info.record_count));
  for (RecordReader reader(info, batch); reader.more();)
    if (!reader.next(records.emplace_back()) || is_far(records.back().timestamp_ms)) return std::nullopt;
  return records;
}

}  // namespace

GroupBatch::GroupBatch(uint64_t base_offset, const BatchInfo& info, Bytes batch)
    : base_offset_(base_offset), info_(info), alone_(std::move(batch)) {}

bool GroupBatch::join(const BatchInfo& info, ByteView batch, size_t max_bytes) {
  // What a record's deltas of time and offset may need more in another place.
  constexpr size_t kDeltas = 9 + 4;
  const size_t most = bytes() + batch.size() + kDeltas * static_cast<size_t>(info.record_count + info_.record_count);
  if (most > std::min(kMaxJoinedBytes, max_bytes) || !is_plain(info)) return false;
  const auto records = read_records(info, batch);
  if (!records || (builder_.empty() && !begin_joining())) return false;
  for (const RecordView& record : *records) builder_.add(record);
  return true;
}

bool GroupBatch::begin_joining() {
  if (!is_plain(info_)) return false;
  const auto records = read_records(info_, alone_);
  if (!records) return false;
  for (const RecordView& record : *records) builder_.add(record);
  return true;
}

}  // namespace millrace::bus
