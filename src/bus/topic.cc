#include "bus/topic.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "proto/bus.pb.h"

namespace millrace::bus {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

}  // namespace

Status check_topic_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxTopicNameBytes || name == "." || name == ".." ||
      !std::all_of(name.begin(), name.end(), is_name_character))
    return fail(ErrorKind::kInvalidArgument, "INVALID_TOPIC_NAME",
                fmt::format("'{}' is no topic name: 1 to {} of a-z A-Z 0-9 . _ - are, except '.' and '..'",
                            name.substr(0, kMaxTopicNameBytes), kMaxTopicNameBytes));
  return {};
}

Home topic_home(std::string_view name) {
  auto home = Home::make(HomeKind::kTopic, name);
  MILLRACE_ASSERT(home, "a topic name that was not checked");
  return *std::move(home);
}

namespace {

/// A row that a writer of ours could have made: others would break what is built on it (a topic without partitions).
bool is_sound(const proto::TopicRow& row) {
  return row.id().size() == sizeof(Uuid::bytes) && check_topic_name(row.name()) && row.partitions_size() >= 1 &&
         static_cast<uint32_t>(row.partitions_size()) <= kMaxPartitionsOfTopic &&
         std::all_of(row.partitions().begin(), row.partitions().end(),
                     [](uint32_t id) { return id <= kMaxPartitionId; });
}

}  // namespace

Result<proto::TopicRow> parse_topic_row(ByteView value) {
  proto::TopicRow row;
  if (!row.ParseFromArray(value.data(), static_cast<int>(value.size())) || !is_sound(row))
    return fail(ErrorKind::kCorruption, "INVALID_TOPIC_ROW",
                fmt::format("{} bytes beginning with {} are no topic row", value.size(), to_hex(value.substr(0, 16))));
  return row;
}

Result<Topic> parse_topic(ByteView value, const TopicSettings& defaults) {
  auto row = parse_topic_row(value);
  if (!row) return tl::unexpected(std::move(row.error()));
  return topic_of(*row, defaults);
}

Topic topic_of(const proto::TopicRow& row, const TopicSettings& defaults) {
  Topic topic;
  std::copy(row.id().begin(), row.id().end(), topic.id.bytes.begin());
  topic.name = row.name();
  topic.partition_ids.assign(row.partitions().begin(), row.partitions().end());
  topic.created_ms = row.created_ms();
  topic.settings = defaults;
  TopicSettings& settings = topic.settings;
  const proto::TopicConfig& chosen = row.config();
  if (chosen.has_retention_ms()) settings.retention_ms = chosen.retention_ms();
  if (chosen.has_retention_bytes()) settings.retention_bytes = chosen.retention_bytes();
  if (chosen.has_cleanup_policy()) {
    settings.cleanup_compact = chosen.cleanup_policy().find("compact") != std::string::npos;
    settings.cleanup_delete = chosen.cleanup_policy().find("delete") != std::string::npos;
  }
  if (chosen.has_segment_bytes()) settings.segment_bytes = chosen.segment_bytes();
  if (chosen.has_segment_ms()) settings.segment_ms = chosen.segment_ms();
  if (chosen.has_max_message_bytes()) settings.max_message_bytes = chosen.max_message_bytes();
  if (chosen.has_message_timestamp_type())
    settings.timestamp_type =
        chosen.message_timestamp_type() == "LogAppendTime" ? TimestampType::kLogAppendTime : TimestampType::kCreateTime;
  if (chosen.has_min_insync_replicas()) settings.min_insync_replicas = chosen.min_insync_replicas();
  if (chosen.has_delete_retention_ms()) settings.delete_retention_ms = chosen.delete_retention_ms();
  return topic;
}

Status check_append(const Topic& topic, const BatchInfo& info, ByteView batch) {
  if (batch.size() > static_cast<uint64_t>(topic.settings.max_message_bytes))
    return fail(ErrorKind::kInvalidArgument, "MESSAGE_TOO_LARGE",
                fmt::format("a record batch of {} bytes for topic '{}' is over its max.message.bytes of {}",
                            batch.size(), topic.name, topic.settings.max_message_bytes));
  if (info.record_count - 1 != info.last_offset_delta)
    return fail(ErrorKind::kInvalidArgument, "CORRUPT_MESSAGE",
                fmt::format("a record batch of {} records for topic '{}' with a last offset delta of {}",
                            info.record_count, topic.name, info.last_offset_delta));
  if (info.delete_horizon_ms())
    return fail(
        ErrorKind::kInvalidArgument, "INVALID_RECORD",
        fmt::format("a record batch for topic '{}' with a delete horizon, which only compaction sets", topic.name));
  if (!topic.settings.cleanup_compact || info.is_control() || info.compression() != Compression::kNone) return {};
  RecordView record;
  for (RecordReader reader(info, batch); reader.more();) {
    MILLRACE_TRY(reader.next(record));
    if (!record.key)
      return fail(ErrorKind::kInvalidArgument, "INVALID_RECORD",
                  fmt::format("a record without a key for topic '{}', which is compacted", topic.name));
  }
  return {};
}

}  // namespace millrace::bus
