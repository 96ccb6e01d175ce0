#include "tests/crash/processed_topics.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

namespace millrace::tests {
namespace {

using nlohmann::json;

constexpr uint32_t kPartitions = 4;

std::vector<json> read_all(Connection& connection, const std::string& topic) {
  std::vector<json> records;
  for (uint32_t partition = 0; partition < kPartitions; ++partition) {
    const std::string target =
        "/v1/topics/" + topic + "/partitions/" + std::to_string(partition) + "/records?limit=10000";
    std::string from;
    for (;;) {
      auto response = connection.request("GET", target + from);
      if (!response || response->status != 200) {
        ADD_FAILURE() << topic << ": " << (response ? response->body : "no answer");
        return records;
      }
      json answer = json::parse(response->body);
      for (json& record : answer["records"]) records.push_back(std::move(record));
      if (answer["nextOffset"] == answer["highWatermark"]) break;
      from = "&offset=" + answer["nextOffset"].get<std::string>();
    }
  }
  return records;
}

}  // namespace

ProcessedTopics::ProcessedTopics(Whereabouts& where, History& history) : where_(where), history_(history) {
  Connection connection(where_);
  for (const char* body :
       {R"({"name":"counts","partitions":4,"configs":{"cleanup.policy":"compact","segment.ms":1000}})",
        R"({"name":"delayed","partitions":4})", R"({"name":"fired","partitions":4})"}) {
    auto created = connection.request("POST", "/v1/topics", {}, body);
    if (!created || created->status != 201) history_.fault("a topic could not be created");
  }
}

void ProcessedTopics::write(uint64_t seed, const std::atomic<bool>& stop) {
  std::mt19937_64 random(seed);
  Connection connection(where_);
  for (uint64_t request = 0; !stop; ++request) {
    json records = json::array();
    std::vector<std::string> sent;
    for (uint64_t n = 1 + random() % 8; n > 0; --n) {
      sent.push_back("d" + std::to_string(request) + "." + std::to_string(n));
      records.push_back({{"key", std::to_string(random() % 1'500)}, {"value", sent.back()}});
    }
    const std::string body = json{{"records", records}}.dump();
    for (;;) {
      auto answer = connection.request("POST", "/v1/topics/delayed/records",
                                       {{"Idempotency-Key", std::to_string(request)}}, body);
      if (!answer || answer->status == 503 || answer->status == 429) continue;
      if (answer->status != 200)
        history_.fault("a write was answered " + std::to_string(answer->status) + ": " + answer->body);
      break;
    }
    sent_.insert(sent.begin(), sent.end());
    if (random() % 20 == 0) stop_a_worker(connection, random());
  }
}

void ProcessedTopics::stop_a_worker(Connection& connection, uint64_t which) {
  auto answer = connection.request("GET", "/v1/workers");
  if (!answer || answer->status != 200) return;
  const json workers = json::parse(answer->body)["workers"];
  if (workers.empty()) return;
  const std::string id = workers[which % workers.size()]["id"];
  auto stopped = connection.request("POST", "/v1/workers/" + id + ":stop");
  if (stopped && stopped->status == 204) ++stopped_;
}

void ProcessedTopics::wait_until_caught_up(Connection& connection) {
  for (;;) {
    auto answer = connection.request("GET", "/v1/workers");
    if (!answer || answer->status != 200) return history_.fault("the workers are gone");
    size_t running = 0;
    bool done = true;
    const json workers = json::parse(answer->body)["workers"];
    for (const json& worker : workers)
      for (const json& partition : worker["partitions"]) {
        running += partition["state"] == "RUNNING";
        done = done && partition["lag"] == "0";
      }
    if (done && running >= 2 * kPartitions) return;
    std::this_thread::yield();
  }
}

void ProcessedTopics::check(size_t records_of_t) {
  Connection connection(where_);
  wait_until_caught_up(connection);
  std::map<std::pair<uint32_t, std::string>, uint64_t> counts;
  const auto counted = read_all(connection, "counts");
  for (const json& record : counted) {
    const std::string key = record["key"].is_null() ? "" : record["key"]["data"].get<std::string>();
    const json& value = record["value"]["data"];
    const uint64_t count = value.is_string() ? std::stoull(value.get<std::string>()) : value.get<uint64_t>();
    uint64_t& last = counts[{record["partition"].get<uint32_t>(), key}];
    if (count <= last) history_.fault("the count of key '" + key + "' does not grow: " + std::to_string(count));
    last = count;
  }
  for (const auto& [key, count] : counts) counted_ += count;
  if (counted_ != records_of_t)
    history_.fault(std::to_string(records_of_t) + " records were counted as " + std::to_string(counted_));

  // Timers may still be under way.
  std::multiset<std::string> fired;
  while (fired.size() < sent_.size()) {
    fired.clear();
    const auto passed = read_all(connection, "fired");
    for (const json& record : passed) fired.insert(record["value"]["data"].get<std::string>());
    if (::testing::Test::HasFailure()) return;
  }
  fired_ = fired.size();
  if (fired != sent_)
    history_.fault(std::to_string(sent_.size()) + " records were delayed, and " + std::to_string(fired_) +
                   " others came out");
}

std::string ProcessedTopics::summary() const {
  return "processors: " + std::to_string(counted_) + " records counted, " + std::to_string(fired_) + " timers fired, " +
         std::to_string(stopped_) + " workers stopped";
}

}  // namespace millrace::tests
