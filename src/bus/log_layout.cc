#include "bus/log_layout.h"

namespace millrace::bus {
namespace {

constexpr int64_t kHourMs = 3600ll * 1000;
constexpr int64_t kDayMs = 24 * kHourMs;

}  // namespace

LogClass log_class_of(const Topic& topic) {
  MILLRACE_ASSERT(!topic.partition_ids.empty(), "a topic without partitions");
  const TopicSettings& settings = topic.settings;
  if (settings.cleanup_compact) return kCompactedClass | topic.partition_ids.front();
  if (settings.retention_bytes != kUnlimited) return kOwnClass | topic.partition_ids.front();
  if (settings.retention_ms == kUnlimited) return 1;
  if (settings.retention_ms <= kHourMs) return 2;
  if (settings.retention_ms <= kDayMs) return 3;
  if (settings.retention_ms <= 7 * kDayMs) return 4;
  if (settings.retention_ms <= 30 * kDayMs) return 5;
  return 6;
}

store::Table table_of(LogClass log_class) {
  return (log_class & kCompactedClass) != 0 ? store::Table::kLogCompacted : store::Table::kLog;
}

Bytes log_key(LogClass log_class, uint32_t segment, uint32_t partition_id, uint64_t base_offset) {
  Bytes key(kLogKeyBytes, '\0');
  store_be(key.data(), log_class);
  store_be(key.data() + 4, segment);
  store_be(key.data() + 8, partition_id);
  store_be(key.data() + 12, base_offset);
  return key;
}

LogKey parse_log_key(ByteView key) {
  return {load_be<uint32_t>(key.data()), load_be<uint32_t>(key.data() + 4), load_be<uint32_t>(key.data() + 8),
          load_be<uint64_t>(key.data() + 12)};
}

std::pair<Bytes, Bytes> segment_bounds(const SegmentId& segment) {
  return {log_key(segment.log_class, segment.number, 0, 0), log_key(segment.log_class, segment.number + 1, 0, 0)};
}

Bytes log_start_key(uint32_t partition_id) {
  Bytes key(kLogStartPrefix);
  append_be(key, partition_id);
  return key;
}

Bytes clean_to_key(uint32_t partition_id) {
  Bytes key(kCleanToPrefix);
  append_be(key, partition_id);
  return key;
}

Bytes segment_row_key(LogClass log_class, uint32_t segment) {
  Bytes key(kSegmentRowPrefix);
  append_be(key, log_class);
  append_be(key, segment);
  return key;
}

}  // namespace millrace::bus
