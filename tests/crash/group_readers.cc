#include "tests/crash/group_readers.h"

#include <nlohmann/json.hpp>
#include <random>
#include <thread>

namespace millrace::tests {
namespace {

using nlohmann::json;

const std::string kGroup = "/v1/groups/readers";

uint64_t number(const json& text) {
  return std::stoull(text.get<std::string>());
}

/// What a group that changes may answer.
bool is_passing(int status) {
  return status == 503 || status == 429 || status == 409;
}

}  // namespace

GroupReaders::GroupReaders(Whereabouts& where, History& history, std::string topic)
    : where_(where), history_(history), topic_(std::move(topic)) {}

GroupReaders::Offsets GroupReaders::acknowledged() const {
  std::lock_guard lock(mutex_);
  return acknowledged_;
}

void GroupReaders::acknowledge(uint32_t partition, uint64_t offset) {
  std::lock_guard lock(mutex_);
  uint64_t& known = acknowledged_[partition];
  known = std::max(known, offset);
}

void GroupReaders::consume(uint64_t seed, const std::atomic<bool>& stop) {
  std::mt19937_64 random(seed);
  Connection connection(where_);
  const std::string join = json{{"topics", {topic_}}, {"sessionTimeout", "6s"}, {"autoOffsetReset", "earliest"}}.dump();
  std::string member;
  while (!stop) {
    if (member.empty()) {
      auto joined = connection.request("POST", kGroup + "/members", {}, join);
      if (!joined || joined->status != 201) continue;
      member = json::parse(joined->body)["memberId"];
      std::lock_guard lock(mutex_);
      ++joins_;
    }
    // What was acknowledged before the question must not be in its answer.
    const Offsets before = acknowledged();
    auto page = connection.request("GET", kGroup + "/members/" + member + "/records?wait=200ms&limit=100");
    if (!page) continue;
    if (page->status == 404) member.clear();
    if (page->status != 200) {
      if (page->status != 404 && !is_passing(page->status))
        history_.fault("a member's read was answered " + std::to_string(page->status) + ": " + page->body);
      continue;
    }
    const json answer = json::parse(page->body);
    for (const json& record : answer["records"]) {
      const uint32_t partition = record["partition"];
      const uint64_t offset = number(record["offset"]);
      auto committed = before.find(partition);
      if (committed != before.end() && offset < committed->second)
        history_.fault("offset " + std::to_string(offset) + " of partition " + std::to_string(partition) +
                       " was delivered after " + std::to_string(committed->second) + " had been committed");
      history_.read(record["value"]["data"], {partition, offset});
      std::lock_guard lock(mutex_);
      ++delivered_[{partition, offset}];
    }
    if (answer["next"].empty() || random() % 10 == 0) continue;
    auto commit = connection.request("POST", kGroup + "/members/" + member + "/offsets", {},
                                     json{{"generation", answer["generation"]}, {"offsets", answer["next"]}}.dump());
    const bool done = commit && commit->status / 100 == 2;
    if (done)
      for (const json& next : answer["next"]) acknowledge(next["partition"], number(next["offset"]));
    if (commit && !done && commit->status != 404 && !is_passing(commit->status))
      history_.fault("a commit was answered " + std::to_string(commit->status) + ": " + commit->body);
    {
      std::lock_guard lock(mutex_);
      ++(done ? commits_ : refused_);
    }
    if (random() % 50 == 0) {
      connection.request("DELETE", kGroup + "/members/" + member);
      member.clear();
    } else if (random() % 50 == 0) {
      member.clear();  // Never heard of again.
    }
  }
}

void GroupReaders::check_committed() {
  const Offsets wanted = acknowledged();
  if (wanted.empty()) return;
  Connection connection(where_);
  auto answer = connection.request("GET", kGroup);
  if (!answer || answer->status != 200)
    return history_.fault("the group is gone: " + (answer ? answer->body : std::string("no answer")));
  Offsets found;
  const json group = json::parse(answer->body);
  for (const json& partition : group["partitions"])
    if (partition.contains("offset")) found[partition["partition"]] = number(partition["offset"]);
  for (const auto& [partition, offset] : wanted)
    if (found[partition] < offset)
      history_.fault("partition " + std::to_string(partition) + ": offset " + std::to_string(offset) +
                     " was committed, and is " + std::to_string(found[partition]));
}

void GroupReaders::wait_until_all_is_read() {
  Connection connection(where_);
  for (;;) {
    auto answer = connection.request("GET", kGroup);
    if (!answer || answer->status != 200) return history_.fault("the group is gone");
    const json group = json::parse(answer->body);
    bool all = !group["partitions"].empty();
    for (const json& partition : group["partitions"])
      all = all && (partition["logEndOffset"] == "0" || partition.value("offset", "") == partition["logEndOffset"]);
    if (all) return;
    std::this_thread::yield();
  }
}

std::string GroupReaders::summary() const {
  std::lock_guard lock(mutex_);
  size_t twice = 0;
  for (const auto& [place, times] : delivered_) twice += times > 1;
  return "group: " + std::to_string(delivered_.size()) + " records delivered, " + std::to_string(twice) +
         " of them more than once; " + std::to_string(commits_) + " commits, " + std::to_string(refused_) +
         " refused or lost; " + std::to_string(joins_) + " joins";
}

}  // namespace millrace::tests
