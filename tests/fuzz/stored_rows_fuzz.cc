#include "bus/store_view.h"
#include "bus/topic.h"
#include "proto/bus.pb.h"
#include "tests/fuzz/target.h"

/// What is read back from disk: damage must come out as an error, whatever the bytes are.
namespace millrace::fuzz {

std::vector<std::string> seed_inputs() {
  proto::TopicRow row;
  row.set_id(std::string(16, '\x11'));
  row.set_name("orders");
  for (uint32_t partition : {1u, 2u, 300u}) row.add_partitions(partition);
  row.mutable_config()->set_retention_ms(-1);
  row.mutable_config()->set_cleanup_policy("compact,delete");
  row.mutable_config()->set_message_timestamp_type("LogAppendTime");
  row.set_created_ms(1'700'000'000'000);
  return {std::string(7, '\0') + '\x05' + row.SerializeAsString(), row.SerializeAsString()};
}

std::vector<std::string> dictionary() {
  return {"compact", "delete", "CreateTime", "\x0a\x10", "\x1a\x03", "\x22\x00", "\xff\xff\xff\xff\x0f"};
}

}  // namespace millrace::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  const std::string_view bytes = fuzz::text_of(data, size);
  (void)bus::parse_topic(bytes, {});
  const auto row = bus::parse_row(store::Table::kTopics, "key", bytes);
  if (!row) return 0;
  const auto topic = bus::parse_topic(row->value, {});
  if (!topic) return 0;
  fuzz::require(bus::check_topic_name(topic->name).has_value(), "a topic that was read has a name that may be");
  fuzz::require(topic->partitions() >= 1 && topic->partitions() <= bus::kMaxPartitionsOfTopic, "and partitions");
  return 0;
}
