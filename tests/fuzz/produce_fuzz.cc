#include "api/records.h"
#include "bus/memory_commit_log.h"
#include "tests/fuzz/target.h"

/// Request bodies of the API, up to the log in memory: the first byte says which route the rest is the body of.
namespace millrace::fuzz {

namespace {

struct Node {
  ManualClock clock;
  bus::MemoryCommitLog log{clock};
  api::TopicsApi topics{log, clock, {}};
  api::RecordsApi records{log, topics, clock};
};

uint64_t records_of(Node& node) {
  auto topic = node.topics.find(*node.log.view(), "t");
  require(topic.has_value(), "the topic is there");
  uint64_t count = 0;
  for (uint32_t partition = 0; partition < topic->partitions(); ++partition)
    count += node.log.view()->partition({topic->id, partition})->high_watermark;
  return count;
}

void produce(std::string_view body) {
  Node node;
  node.topics.create(R"({"name":"t","partitions":2})", {}, [](auto made) { require(made.has_value(), "a topic"); });
  int answers = 0;
  uint64_t acknowledged = 0;
  node.records.produce("t", body, std::string("key"), [&](Result<api::RecordsApi::Produced> answer) {
    ++answers;
    if (!answer) return;
    auto json = api::parse_json(answer->json);
    require(json.has_value(), "the answer is JSON");
    acknowledged = json->at("offsets").size();
  });
  require(answers == 1, "one answer");
  require(records_of(node) == acknowledged, "all of the records, or none");
  uint64_t read = 0;
  for (uint32_t partition = 0; partition < 2; ++partition) {
    api::ReadRequest request{"t", partition, 0, {}, 10'000, 16u << 20};
    auto answer = node.records.read(request);
    require(answer.has_value(), "a read");
    auto json = api::parse_json(answer->json);
    require(json.has_value(), "what was read is JSON");
    read += json->at("records").size();
  }
  require(read == acknowledged, "what was acknowledged is read");
  // The same request again has no effect; what is wrong with it has not changed.
  node.records.produce("t", body, std::string("key"), [&](Result<api::RecordsApi::Produced> answer) {
    require(answer.has_value() == (acknowledged > 0), "the same verdict again");
    require(!answer || answer->replayed, "replayed");
  });
  require(records_of(node) == acknowledged, "a repeated request has no effect");
}

void create_topic(std::string_view body) {
  Node node;
  bool made = false;
  int answers = 0;
  std::string answer;
  node.topics.create(body, {}, [&](Result<std::string> reply) {
    ++answers;
    if (reply) made = true, answer = *reply;
  });
  require(answers == 1, "one answer");
  auto list = api::parse_json(node.topics.list({}, 10).value());
  require(list && list->at("topics").size() == (made ? 1 : 0), "a topic is there exactly when that was the answer");
  if (made) require(list->at("topics")[0] == api::parse_json(answer).value(), "as it was answered");
}

void change_topic(std::string_view body) {
  Node node;
  node.topics.create(R"({"name":"t","partitions":2})", {}, [](auto made) { require(made.has_value(), "a topic"); });
  const std::string before = node.topics.get("t").value();
  std::optional<std::string> changed;
  int answers = 0;
  node.topics.change("t", body, [&](Result<std::string> reply) {
    ++answers;
    if (reply) changed = *reply;
  });
  require(answers == 1, "one answer");
  require(node.topics.get("t").value() == changed.value_or(before), "the topic is as answered");
}

}  // namespace

std::vector<std::string> seed_inputs() {
  return {
      R"(0{"records":[{"key":"a","value":{"x":[1,2]}},{"key":null,"value":"text","headers":[{"name":"h","value":"v"}]}]})",
      R"(0{"records":[{"key":{"type":"BINARY","data":"AAEC"},"value":{"type":"STRING","data":"s"},"partition":1}]})",
      R"(0{"records":[{"value":{"type":"JSON","data":{"a":1}},"timestamp":"2026-01-02T03:04:05Z"},)"
      R"({"value":1,"timestamp":1700000000000},{"value":null,"key":"k"}]})",
      R"(1{"name":"orders","partitions":8,"configs":{"retention.ms":"604800000","cleanup.policy":"compact,delete"}})",
      R"(1{"name":"x","configs":{"retention.bytes":1,"segment.bytes":"1048576","max.message.bytes":"1000",)"
      R"("message.timestamp.type":"LogAppendTime","delete.retention.ms":0,"segment.ms":"1","min.insync.replicas":1}})",
      R"(2{"configs":{"retention.ms":null,"cleanup.policy":"delete"}})"};
}

std::vector<std::string> dictionary() {
  return {"\"records\":[",
          "\"partition\":",
          "\"timestamp\":",
          "\"headers\":[]",
          "\"type\":\"BINARY\"",
          "\"data\":",
          "\"partitions\":",
          "\"configs\":{",
          "-1",
          "4294967296",
          "9223372036854775807",
          "\"null\"",
          "compact",
          "delete",
          "LogAppendTime",
          "CreateTime",
          "{\"value\":0},",
          "=="};
}

}  // namespace millrace::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace::fuzz;
  if (size == 0) return 0;
  const std::string_view body = text_of(data, size).substr(1);
  switch (data[0] % 3) {
    case 0:
      produce(body);
      break;
    case 1:
      create_topic(body);
      break;
    case 2:
      change_topic(body);
      break;
  }
  return 0;
}
