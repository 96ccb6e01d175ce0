#include "tests/crash/kept_topics.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace millrace::tests {
namespace {

using nlohmann::json;

uint64_t number(const json& text) {
  return std::stoull(text.get<std::string>());
}

/// All records of partition 0, in order.
std::vector<json> read_all(Connection& connection, const std::string& topic) {
  std::vector<json> records;
  std::string from = "limit=10000";
  for (;;) {
    auto response = connection.request("GET", "/v1/topics/" + topic + "/partitions/0/records?" + from);
    if (!response || response->status != 200) {
      ADD_FAILURE() << topic << ": " << (response ? response->body : "no answer");
      return records;
    }
    json answer = json::parse(response->body);
    for (json& record : answer["records"]) records.push_back(std::move(record));
    if (answer["nextOffset"] == answer["highWatermark"]) return records;
    from = "limit=10000&offset=" + answer["nextOffset"].get<std::string>();
  }
}

}  // namespace

KeptTopics::KeptTopics(Whereabouts& where, History& history) : where_(where), history_(history) {
  Connection connection(where_);
  for (const char* body :
       {R"({"name":"compacted","partitions":1,"configs":{"cleanup.policy":"compact","segment.ms":1000}})",
        R"({"name":"brief","partitions":1,"configs":{"retention.ms":1000}})"}) {
    auto created = connection.request("POST", "/v1/topics", {}, body);
    if (!created || created->status != 201) history_.fault("a topic could not be created");
  }
}

void KeptTopics::write(uint64_t seed, const std::atomic<bool>& stop) {
  std::mt19937_64 random(seed);
  Connection connection(where_);
  for (uint64_t request = 0; !stop; ++request) {
    const bool compacted = request % 2 == 0;
    json records = json::array();
    std::vector<Written> sent;
    for (uint64_t n = 1 + random() % 8; n > 0; --n) {
      sent.push_back({"k" + std::to_string(random() % 40),
                      std::to_string(request) + "." + std::to_string(n) + std::string(random() % 400, 'v')});
      records.push_back({{"key", sent.back().key}, {"value", sent.back().value}});
    }
    const std::string target = std::string("/v1/topics/") + (compacted ? "compacted" : "brief") + "/records";
    const std::string body = json{{"records", records}}.dump();
    for (;;) {
      auto answer = connection.request("POST", target, {{"Idempotency-Key", std::to_string(request)}}, body);
      if (!answer || answer->status == 503 || answer->status == 429) continue;
      if (answer->status != 200) {
        history_.fault("a write was answered " + std::to_string(answer->status) + ": " + answer->body);
        break;
      }
      const json offsets = json::parse(answer->body)["offsets"];
      for (size_t i = 0; i < sent.size(); ++i) {
        if (compacted)
          last_[sent[i].key] = sent[i].value;
        else
          brief_[number(offsets[i]["offset"])] = sent[i];
      }
      break;
    }
    written_ += sent.size();
  }
}

void KeptTopics::check() {
  check_compacted();
  check_brief();
}

void KeptTopics::check_compacted() {
  Connection connection(where_);
  std::map<std::string, std::string> last;
  const auto records = read_all(connection, "compacted");
  for (const json& record : records) last[record["key"]["data"]] = record["value"]["data"];
  compacted_left_ = records.size();
  if (last != last_) history_.fault("the compacted topic has lost or changed the last value of a key");
}

void KeptTopics::check_brief() {
  Connection connection(where_);
  const auto records = read_all(connection, "brief");
  brief_left_ = records.size();
  std::map<uint64_t, std::string> found;
  for (const json& record : records) found[number(record["offset"])] = record["value"]["data"];
  // Whatever is gone is older than all that is there.
  for (const auto& [offset, written] : brief_) {
    auto there = found.find(offset);
    if (there == found.end() ? !found.empty() && offset > found.begin()->first : there->second != written.value)
      history_.fault("the record at offset " + std::to_string(offset) + " of the brief topic is lost or another");
  }
  if (found.size() > brief_.size()) history_.fault("the brief topic holds more than was written");
}

std::string KeptTopics::summary() const {
  return "compacted and brief topics: " + std::to_string(written_) + " records written, " +
         std::to_string(compacted_left_) + " and " + std::to_string(brief_left_) + " left";
}

}  // namespace millrace::tests
