#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "bus/home.h"
#include "bus/record_batch.h"

namespace millrace::proto {
class TopicRow;
}

/// A topic as its row in table topics says. A topic's partitions exist exactly as long as its row names them.
namespace millrace::bus {

/// Kafka's limit and alphabet for topic names.
inline constexpr size_t kMaxTopicNameBytes = 249;
/// The most partitions of one topic.
inline constexpr uint32_t kMaxPartitionsOfTopic = 10'000;
/// Node-wide partition ids; log_layout.h has other uses for the bits above.
inline constexpr uint32_t kMaxPartitionId = 0x3FFF'FFFF;
/// "No bound" in retention settings.
inline constexpr int64_t kUnlimited = -1;

/// What the settings that a topic did not choose are. Names and meanings are Kafka's topic configs.
struct TopicSettings {
  int64_t retention_ms = 7ll * 24 * 3600 * 1000;  ///< kUnlimited keeps for ever
  int64_t retention_bytes = kUnlimited;           ///< of a partition
  bool cleanup_delete = true;
  bool cleanup_compact = false;
  int64_t segment_bytes = 1ll << 30;
  int64_t segment_ms = 7ll * 24 * 3600 * 1000;
  int64_t max_message_bytes = 1ll << 20;  ///< of a record batch
  TimestampType timestamp_type = TimestampType::kCreateTime;
  int64_t min_insync_replicas = 1;
  int64_t delete_retention_ms = 24ll * 3600 * 1000;
};

struct Topic {
  Uuid id;
  std::string name;
  std::vector<uint32_t> partition_ids;  ///< node-wide, by partition number
  TopicSettings settings;               ///< effective: chosen or default
  int64_t created_ms = 0;

  uint32_t partitions() const { return static_cast<uint32_t>(partition_ids.size()); }
};

/// Kafka's rule: 1 to 249 of [a-zA-Z0-9._-], not "." or "..". Errors: kInvalidArgument INVALID_TOPIC_NAME.
Status check_topic_name(std::string_view name);

/// The home of a topic's metadata; its prefix is the key of its row. The name has passed check_topic_name().
Home topic_home(std::string_view name);

/// Errors: kCorruption INVALID_TOPIC_ROW.
Result<proto::TopicRow> parse_topic_row(ByteView value);
Result<Topic> parse_topic(ByteView value, const TopicSettings& defaults);
Topic topic_of(const proto::TopicRow& row, const TopicSettings& defaults);

/// What a topic asks of a batch beyond soundness. Errors: kInvalidArgument MESSAGE_TOO_LARGE, INVALID_RECORD.
Status check_append(const Topic& topic, const BatchInfo& info, ByteView batch);

}  // namespace millrace::bus
