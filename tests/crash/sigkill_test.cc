#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/crash/connection.h"
#include "tests/crash/group_readers.h"
#include "tests/crash/history.h"
#include "tests/crash/kept_topics.h"
#include "tests/crash/processed_topics.h"
#include "tests/integration/millraced.h"
#include "tests/support/random_seed.h"
#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

using nlohmann::json;

constexpr int kWriters = 8, kReaders = 4, kMembers = 3;
constexpr uint32_t kPartitions = 4;

std::string id_of(const json& record) {
  return record.at("value").at("data").get<std::string>();
}

/// Sends batches of unique records; repeats each under its key until it is answered, across kills.
void write(Whereabouts& where, History& history, int writer, uint64_t seed, const std::atomic<bool>& stop,
           std::vector<std::string>& sent) {
  std::mt19937_64 random(seed);
  Connection connection(where);
  for (int batch = 0; !stop; ++batch) {
    json records = json::array();
    std::vector<std::string> ids;
    for (size_t i = 0, n = 1 + random() % 5; i < n; ++i) {
      ids.push_back("w" + std::to_string(writer) + "-" + std::to_string(batch) + "-" + std::to_string(i));
      json record = {{"value", ids.back()}};
      if (random() % 2) record["key"] = "k" + std::to_string(random() % 50);
      records.push_back(std::move(record));
    }
    const std::string body = json{{"records", records}}.dump();
    const std::string key = "w" + std::to_string(writer) + "-" + std::to_string(batch);
    for (;;) {
      auto response = connection.request("POST", "/v1/topics/t/records", {{"Idempotency-Key", key}}, body);
      if (!response) continue;
      if (response->status == 200) {
        json offsets = json::parse(response->body).at("offsets");
        for (size_t i = 0; i < ids.size(); ++i)
          history.acknowledged(ids[i], {offsets[i]["partition"], std::stoull(offsets[i]["offset"].get<std::string>())});
        break;
      }
      // A node that is going down or full says so; anything else is a fault.
      if (response->status != 503 && response->status != 429) {
        history.fault("a write was answered " + std::to_string(response->status) + ": " + response->body);
        break;
      }
    }
    sent.insert(sent.end(), ids.begin(), ids.end());
  }
}

void read(Whereabouts& where, History& history, uint32_t partition, const std::atomic<bool>& stop) {
  Connection connection(where);
  uint64_t offset = 0;
  while (!stop) {
    auto response = connection.request("GET", "/v1/topics/t/partitions/" + std::to_string(partition) +
                                                  "/records?wait=100ms&offset=" + std::to_string(offset));
    if (!response) continue;
    if (response->status != 200) {
      if (response->status != 503)
        history.fault("a read was answered " + std::to_string(response->status) + ": " + response->body);
      continue;
    }
    json answer = json::parse(response->body);
    for (const json& record : answer["records"])
      history.read(id_of(record), {partition, std::stoull(record["offset"].get<std::string>())});
    offset = std::stoull(answer["nextOffset"].get<std::string>());
  }
}

std::map<Place, std::string> whole_log(Whereabouts& where) {
  Connection connection(where);
  std::map<Place, std::string> log;
  for (uint32_t partition = 0; partition < kPartitions; ++partition)
    for (uint64_t offset = 0;;) {
      auto response =
          connection.request("GET", "/v1/topics/t/partitions/" + std::to_string(partition) +
                                        "/records?limit=10000&maxBytes=4MB&offset=" + std::to_string(offset));
      if (!response || response->status != 200) {
        ADD_FAILURE() << "the final read failed: " << (response ? response->body : "no answer");
        return log;
      }
      json answer = json::parse(response->body);
      for (const json& record : answer["records"])
        log[{partition, std::stoull(record["offset"].get<std::string>())}] = id_of(record);
      offset = std::stoull(answer["nextOffset"].get<std::string>());
      if (answer["nextOffset"] == answer["highWatermark"]) break;
    }
  return log;
}

int cycles() {
  const char* text = std::getenv("MILLRACE_CRASH_CYCLES");
  return text ? std::atoi(text) : 25;
}

TEST(SigkillUnderLoad, NothingAcknowledgedOrSeenIsLostAndNothingIsThereTwice) {
  TempDir directory;
  const auto data = directory.path() / "data";
  const uint64_t seed = random_seed();
  std::mt19937_64 random(seed);
  Whereabouts where;
  History history;
  // Retention and compaction have something to do all the time.
  auto options = daemon_on(data, {"--set", "bus.segmentSize=1MB", "--set", "bus.segmentRollAfter=1s", "--set",
                                  "bus.retentionCheckInterval=100ms"});
  auto daemon = std::make_unique<Process>(kMillraced, options);
  auto port = daemon->wait_for_port();
  ASSERT_TRUE(port) << daemon->err();
  where.up(*port);
  {
    Connection connection(where);
    auto created = connection.request("POST", "/v1/topics", {}, R"({"name":"t","partitions":4})");
    ASSERT_TRUE(created && created->status == 201);
  }
  GroupReaders group(where, history, "t");
  KeptTopics kept(where, history);
  ProcessedTopics processed(where, history);

  std::atomic<bool> stop_writers{false}, stop_readers{false};
  std::vector<std::vector<std::string>> sent(kWriters);
  std::vector<std::thread> writers, readers;
  for (int i = 0; i < kWriters; ++i)
    writers.emplace_back([&, i] {
      write(where, history, i, seed + static_cast<uint64_t>(i) + 1, stop_writers, sent[static_cast<size_t>(i)]);
    });
  for (uint32_t i = 0; i < kReaders; ++i)
    readers.emplace_back([&, i] { read(where, history, i % kPartitions, stop_readers); });
  for (int i = 0; i < kMembers; ++i)
    readers.emplace_back([&, i] { group.consume(seed + 100 + static_cast<uint64_t>(i), stop_readers); });
  writers.emplace_back([&] { kept.write(seed + 200, stop_writers); });
  writers.emplace_back([&] { processed.write(seed + 300, stop_writers); });

  int killed = 0;
  for (; killed < cycles() && history.faults().empty(); ++killed) {
    // The random moment is the test: early kills hit the recovery itself.
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 4 == 0 ? random() % 10 : 30 + random() % 270));
    where.down();
    daemon->kill();
    daemon = std::make_unique<Process>(kMillraced, options);
    port = daemon->wait_for_port();
    if (!port) history.fault("the daemon did not start again: " + daemon->err());
    if (!port) break;
    where.up(*port);
    group.check_committed();
  }
  stop_writers = true;
  for (auto& thread : writers) thread.join();
  if (port) group.wait_until_all_is_read();
  stop_readers = true;
  for (auto& thread : readers) thread.join();

  std::vector<std::string> all_sent;
  for (const auto& ids : sent) all_sent.insert(all_sent.end(), ids.begin(), ids.end());
  if (port) history.check_final(whole_log(where), all_sent), kept.check(), processed.check(all_sent.size());
  where.end();
  daemon->stop();
  std::printf("SIGKILL cycles: %d; records acknowledged: %zu, read by followers: %zu, sent: %zu; seed %llu\n", killed,
              history.acknowledged_count(), history.read_count(), all_sent.size(),
              static_cast<unsigned long long>(seed));
  std::printf("  %s\n  %s\n  %s\n", group.summary().c_str(), kept.summary().c_str(), processed.summary().c_str());
  auto faults = history.faults();
  for (size_t i = 0; i < faults.size() && i < 20; ++i) ADD_FAILURE() << faults[i];
  EXPECT_GT(history.acknowledged_count(), 0u);
  EXPECT_GT(history.read_count(), 0u);
}

}  // namespace
}  // namespace millrace::tests
