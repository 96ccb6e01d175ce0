// Random commits, trims, passes of the log keeper, restarts and reads: the durable carrier against the one in memory.
// MILLRACE_TEST_LONG=1 does more.
#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <random>

#include "bus/log_keeper.h"
#include "tests/bus/pipeline_fixture.h"
#include "tests/support/random_seed.h"

namespace millrace::bus {
namespace {

class CommitModel : public PipelineFixture {
 protected:
  struct Known {
    std::string name;
    Uuid id;
    std::vector<uint32_t> partitions;
    bool compacts = false;  ///< now or once: records may be gone, save the last of each key
    bool trimmed = false;   ///< at any offset, not only between ranges
  };
  /// The same commit for both carriers; only versions differ.
  struct Pair {
    Commit model, real;
    explicit Pair(const Home& home) : model(home), real(home) {}
    template <typename Change>
    void both(Change change) {
      change(model);
      change(real);
    }
  };
  struct Versions {
    Version model = kAbsent, real = kAbsent;
  };

  CommitModel() {
    options.log.segment_bytes = 2'000;
    options.log.segment_ms = 6ll * 3600 * 1000;
    options.max_group_bytes = 8'000;
    for (const char* name : {"g", "h"}) homes.push_back(*Home::make(HomeKind::kGroup, name));
  }

  uint64_t pick(uint64_t bound) { return random() % bound; }
  bool chance(uint64_t percent) { return pick(100) < percent; }
  int64_t some_time() { return clock.wall_ms() - 50'000 + static_cast<int64_t>(pick(100'000)); }

  // What a commit is made of.
  proto::TopicConfig some_config() {
    proto::TopicConfig config;
    constexpr int64_t kHour = 3600ll * 1000;
    const int64_t retention[] = {-1, kHour, 24 * kHour, 7 * 24 * kHour, 30 * 24 * kHour, 365 * 24 * kHour};
    config.set_retention_ms(retention[pick(std::size(retention))]);
    if (chance(20)) config.set_retention_bytes(100'000);
    if (chance(35)) config.set_cleanup_policy(chance(50) ? "compact" : "compact,delete");
    if (chance(20)) config.set_message_timestamp_type("LogAppendTime");
    if (chance(20)) config.set_max_message_bytes(400);
    config.set_segment_bytes(1'500);
    return config;
  }
  Bytes some_batch() {
    BatchBuilder builder;
    for (uint64_t n = 1 + pick(4); n > 0; --n) {
      RecordView record;
      Bytes value(pick(chance(10) ? 600 : 60), 'v');
      record.timestamp_ms = some_time();
      const Bytes key = "key" + std::to_string(pick(5));
      if (!chance(5)) record.key = key;
      if (!chance(15)) record.value = value;
      builder.add(record);
    }
    Bytes batch = builder.finish();
    if (chance(1)) batch.back() ^= 1;
    return batch;
  }
  TopicPartition some_partition() {
    if (topics.empty() || chance(2)) return {Uuid{}, 0};
    if (!gone.empty() && chance(3)) return {gone[pick(gone.size())], 0};
    const Known& topic = topics[pick(topics.size())];
    return {topic.id, static_cast<uint32_t>(pick(topic.partitions.size() + (chance(3) ? 1 : 0)))};
  }
  void put_topic(Pair& pair, Known& topic) {
    proto::TopicRow row;
    row.set_id(Bytes(topic.id.view()));
    row.set_name(topic.name);
    *row.mutable_config() = some_config();
    for (uint32_t id : topic.partitions) row.add_partitions(id);
    topic.compacts = topic.compacts || row.config().has_cleanup_policy();
    pair.both([&](Commit& commit) {
      commit.state.push_back({Table::kTopics, Bytes(commit.home.prefix()), row.SerializeAsString()});
    });
  }
  void grow(Known& topic) {
    uint32_t count = 1 + static_cast<uint32_t>(pick(3));
    uint32_t first = log().allocate_partition_ids(count);
    for (uint32_t i = 0; i < count; ++i) topic.partitions.push_back(first + i);
  }
  /// Creates, replaces in place, changes, grows or deletes.
  Pair topic_commit() {
    std::string name = "t" + std::to_string(pick(6));
    Pair pair(topic_home(name));
    auto topic = std::find_if(topics.begin(), topics.end(), [&](const Known& known) { return known.name == name; });
    if (topic == topics.end() || chance(10)) {
      Known fresh{name, {}, {}, false, false};
      for (auto& byte : fresh.id.bytes) byte = static_cast<uint8_t>(random());
      grow(fresh);
      put_topic(pair, fresh);
      if (topic != topics.end()) {
        gone.push_back(topic->id);
        topics.erase(topic);
      }
      topics.push_back(std::move(fresh));
    } else if (chance(30)) {
      pair.both([](Commit& commit) {
        commit.state.push_back({Table::kTopics, Bytes(commit.home.prefix()), std::nullopt});
      });
      gone.push_back(topic->id);
      topics.erase(topic);
    } else {
      if (chance(30)) grow(*topic);
      put_topic(pair, *topic);
    }
    return pair;
  }
  Versions versions_of(Table table, const Bytes& key) {
    auto in_model = *model.view()->get(table, key);
    auto in_real = *log().view()->get(table, key);
    return {in_model ? in_model->version : kAbsent, in_real ? in_real->version : kAbsent};
  }
  void add_condition(Pair& pair) {
    Bytes key = pair.model.home.key(std::to_string(pick(6)));
    Versions now = versions_of(Table::kGroups, key);
    Versions expected = now;
    if (chance(15) && !seen_versions.empty()) expected = seen_versions[pick(seen_versions.size())];
    if (chance(5)) expected = {};
    pair.model.conditions.push_back({Table::kGroups, key, expected.model});
    pair.real.conditions.push_back({Table::kGroups, key, expected.real});
    seen_versions.push_back(now);
  }
  Pair domain_commit() {
    Pair pair(homes[pick(homes.size())]);
    for (uint64_t n = pick(4); n > 0; --n) {
      Change change{Table::kGroups, pair.model.home.key(std::to_string(pick(6))), std::nullopt};
      if (!chance(25)) change.value = Bytes(pick(100), static_cast<char>('a' + pick(26)));
      pair.both([&](Commit& commit) { commit.state.push_back(change); });
    }
    for (uint64_t n = pick(3); n > 0 && chance(60); --n) add_condition(pair);
    if (chance(10)) {
      proto::LeaseRow lease;
      lease.set_epoch(pick(3));
      Bytes value = lease.SerializeAsString();
      pair.both([&](Commit& commit) { commit.state.push_back({Table::kMeta, commit.home.key("lease"), value}); });
    }
    if (uint64_t epoch = pick(3); chance(15))
      pair.both([&](Commit& commit) { commit.fences.push_back({commit.home.key("lease"), epoch}); });
    if (chance(20)) {
      TimerChange timer{static_cast<int64_t>(pick(5)), std::to_string(pick(3)), Bytes("payload")};
      if (chance(30)) timer.payload = std::nullopt;
      pair.both([&](Commit& commit) { commit.timers.push_back(timer); });
    }
    if (ConsumedOffset offset{"g", some_partition(), pick(100)}; chance(20))
      pair.both([&](Commit& commit) { commit.offsets.push_back(offset); });
    return pair;
  }
  Pair some_commit() {
    const bool of_topic = topics.empty() || chance(12);
    Pair pair = of_topic ? topic_commit() : domain_commit();
    for (uint64_t n = pick(4); n > 0 && chance(of_topic ? 30 : 80); --n) {
      Append append{some_partition(), some_batch()};
      pair.both([&](Commit& commit) { commit.appends.push_back(append); });
    }
    if (chance(of_topic ? 0 : 25)) {
      IdempotencyKey key{Bytes(32, static_cast<char>(pick(8))), Bytes(32, static_cast<char>(pick(10) == 0)), "answer"};
      key.answer += std::to_string(pick(1000));
      pair.both([&](Commit& commit) { commit.idempotency = key; });
    }
    return pair;
  }

  // Steps.
  void commit_some() {
    // All are made before the first is carried: what they expect of rows may be changed by those before them.
    std::vector<Pair> pairs;
    for (uint64_t n = 1 + pick(6); n > 0; --n) pairs.push_back(some_commit());
    std::vector<CommitResult> expected, results;
    Gate gate(log(), homes.front());
    for (Pair& pair : pairs) {
      pair.real.done = [&](CommitResult result) { results.push_back(std::move(result)); };
      log().submit(std::move(pair.real));
      expected.push_back(model.submit_and_wait(std::move(pair.model)));
    }
    gate.open();
    ASSERT_TRUE(log().submit_and_wait(Commit(home)));
    ASSERT_EQ(results.size(), expected.size());
    // A batch that is not sound is refused at once, before what was submitted earlier; all others are in order.
    auto at_once = [](const CommitResult& result) { return !result && result.error().code == "CORRUPT_MESSAGE"; };
    std::stable_partition(expected.begin(), expected.end(), at_once);
    std::stable_partition(results.begin(), results.end(), at_once);
    for (size_t i = 0; i < results.size(); ++i) expect_same(expected[i], results[i]);
  }
  void expect_same(const CommitResult& expected, const CommitResult& result) {
    ++outcomes[expected ? (expected->replayed ? "replayed" : "accepted") : std::string(expected.error().code)];
    ASSERT_EQ(expected ? "" : expected.error().code, result ? "" : result.error().code);
    if (!expected) return;
    ASSERT_EQ(expected->replayed, result->replayed);
    ASSERT_EQ(expected->answer, result->answer);
    ASSERT_EQ(expected->appends.size(), result->appends.size());
    for (size_t i = 0; i < expected->appends.size(); ++i) {
      ASSERT_EQ(expected->appends[i].to, result->appends[i].to);
      ASSERT_EQ(expected->appends[i].base_offset, result->appends[i].base_offset);
      ASSERT_EQ(expected->appends[i].records, result->appends[i].records);
    }
    same_version(expected->version, result->version);
  }
  /// Versions mean nothing but which are equal: the two carriers' stand for each other one to one.
  void same_version(Version in_model, Version in_real) {
    ASSERT_EQ(real_by_model.try_emplace(in_model, in_real).first->second, in_real);
    ASSERT_EQ(model_by_real.try_emplace(in_real, in_model).first->second, in_model);
  }
  void compare_rows(Table table, ByteView prefix) {
    auto expected = model.view()->list(table, prefix, "", 1'000'000);
    auto view = log().view();
    std::vector<std::pair<Bytes, Row>> rows;
    for (size_t limit = 1 + pick(20);;) {
      auto page = view->list(table, prefix, rows.empty() ? "" : rows.back().first, limit);
      ASSERT_TRUE(page) << to_string(page.error());
      rows.insert(rows.end(), page->begin(), page->end());
      if (page->size() < limit) break;
    }
    ASSERT_EQ(rows.size(), expected->size()) << store::name_of(table);
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].first, (*expected)[i].first);
      ASSERT_EQ(rows[i].second.value, (*expected)[i].second.value) << to_hex(rows[i].first);
      same_version((*expected)[i].second.version, rows[i].second.version);
    }
  }
  void trim_some() {
    if (topics.empty()) return;
    Known& topic = topics[pick(topics.size())];
    const TopicPartition place{topic.id, static_cast<uint32_t>(pick(topic.partitions.size()))};
    auto state = model.view()->partition(place);
    const Trim trim{place, pick(state ? state->high_watermark + 2 : 2)};
    Maintenance work;
    work.trims.push_back(trim);
    ASSERT_TRUE(log().maintain(std::move(work)));
    model.trim(trim);
    topic.trimmed = true;
    ++outcomes["trims"];
  }
  /// What the keeper removed, the model forgets; whether it was right to, its own tests say.
  void keep() {
    LogKeeper::Options keeping;
    keeping.io_bytes_per_second = 0;
    keeping.compaction_memory_bytes = 100 + pick(2'000);
    LogKeeper keeper(log(), durable->store(), clock, keeping);
    auto kept = keeper.run_once();
    ASSERT_TRUE(kept) << to_string(kept.error());
    ASSERT_TRUE(keeper.damages().empty()) << keeper.damages().front();
    outcomes["removed segments"] += static_cast<int>(keeper.stats().removed_segments);
    outcomes["moved bytes"] += static_cast<int>(keeper.stats().moved_bytes);
    outcomes["compacted bytes"] += static_cast<int>(keeper.stats().compacted_bytes);
    auto view = log().view();
    for (const Known& topic : topics)
      for (uint32_t i = 0; i < topic.partitions.size(); ++i)
        if (auto state = view->partition({topic.id, i})) model.trim({{topic.id, i}, state->log_start});
    // Some are not: the commit that was to replace them was refused.
    for (const Uuid& id : gone)
      if (auto state = view->partition({id, 0})) model.trim({{id, 0}, state->log_start});
  }
  void compare_partition(const TopicPartition& place, const Known* topic) {
    const bool compacts = topic == nullptr || topic->compacts, trimmed = topic == nullptr || topic->trimmed;
    auto in_model = model.view(), in_real = log().view();
    auto expected = in_model->partition(place), state = in_real->partition(place);
    ASSERT_EQ(expected.has_value(), state.has_value());
    if (state) {
      ASSERT_EQ(expected->log_start, state->log_start);
      ASSERT_EQ(expected->high_watermark, state->high_watermark);
      uint64_t bytes = 0;
      const auto batches = in_real->fetch(place, state->log_start, 1u << 30).value();
      for (const Bytes& batch : batches) bytes += batch.size();
      // What lies below the start in the same range still counts.
      ASSERT_GE(state->bytes, bytes);
      ASSERT_TRUE(trimmed || state->bytes == bytes) << state->bytes << " " << bytes;
      ASSERT_TRUE(trimmed || compacts || state->bytes <= expected->bytes) << "joining batches saves their headers";
    }
    if (compacts) return compare_compacted(*in_model, *in_real, place);
    compare_fetch(*in_model, *in_real, place, state ? state->log_start : 0, 1u << 30);
    for (int i = 0; i < 3; ++i)
      compare_fetch(*in_model, *in_real, place, pick(state ? state->high_watermark + 2 : 2), 1 + pick(3'000));
    for (int i = 0; i < 3; ++i) {
      int64_t time = some_time();
      auto there = in_model->offset_for_time(place, time), here = in_real->offset_for_time(place, time);
      ASSERT_EQ(there ? "" : there.error().code, here ? "" : here.error().code);
      if (here) {
        ASSERT_EQ(*there, *here);
      }
    }
  }
  struct Keyed {
    std::string key, text;
    bool has_key = false, tombstone = false;
  };
  static std::map<int64_t, Keyed> keyed_records_of(const std::vector<Bytes>& batches, uint64_t from) {
    std::map<int64_t, Keyed> records;
    for (const Bytes& batch : batches) {
      const BatchInfo info = *check_batch(batch);
      RecordView record;
      for (RecordReader reader(info, batch); reader.more();) {
        EXPECT_TRUE(reader.next(record));
        if (record.offset < static_cast<int64_t>(from)) continue;
        records[record.offset] = {Bytes(record.key.value_or("")),
                                  fmt::format("{} {}", record.timestamp_ms, to_hex(record.value.value_or("null"))),
                                  record.key.has_value(), !record.value};
      }
    }
    return records;
  }
  /// What is there is what was there, and what is not was overtaken or is a tombstone.
  static void compare_compacted(const View& in_model, const View& in_real, const TopicPartition& place) {
    auto state = in_real.partition(place);
    if (!state) return;
    auto expected = keyed_records_of(in_model.fetch(place, state->log_start, 1u << 30).value(), state->log_start);
    const auto records = keyed_records_of(in_real.fetch(place, state->log_start, 1u << 30).value(), state->log_start);
    std::map<std::string, int64_t> last;
    for (const auto& [offset, record] : expected) last[record.key] = offset;
    for (const auto& [offset, record] : expected) {
      auto found = records.find(offset);
      if (found != records.end()) {
        ASSERT_EQ(found->second.text, record.text) << offset;
      } else {
        ASSERT_TRUE(record.has_key && (last[record.key] > offset || record.tombstone)) << offset;
      }
    }
    for (const auto& [offset, record] : records) ASSERT_TRUE(expected.contains(offset)) << offset;
  }
  /// Every record as a text, by its offset. Batches may be joined, so only their records can be compared; those of a
  /// batch that stays closed are its bytes.
  static std::map<int64_t, std::string> records_of(std::vector<Bytes> batches) {
    std::map<int64_t, std::string> records;
    for (Bytes& batch : batches) {
      const BatchInfo info = *check_batch(batch);
      RecordView record;
      RecordReader reader(info, batch);
      if (!reader.next(record)) {
        // Leader epochs rise with crashes, which the model has none of.
        assign_offset(batch, info.base_offset, 0);
        records[info.base_offset] = batch;
        continue;
      }
      for (;;) {
        auto text = [](const std::optional<ByteView>& bytes) { return bytes ? to_hex(*bytes) : "null"; };
        std::string all = fmt::format("{} {} {} {}", record.timestamp_ms, static_cast<int>(info.timestamp_type()),
                                      text(record.key), text(record.value));
        for (const auto& header : record.headers) all += " " + to_hex(header.name) + "=" + text(header.value);
        EXPECT_TRUE(records.emplace(record.offset, std::move(all)).second) << record.offset;
        if (!reader.more()) break;
        EXPECT_TRUE(reader.next(record));
      }
    }
    return records;
  }
  static void compare_fetch(const View& in_model, const View& in_real, const TopicPartition& place, uint64_t offset,
                            size_t max_bytes) {
    auto expected = in_model.fetch(place, offset, 1u << 30), fetched = in_real.fetch(place, offset, max_bytes);
    ASSERT_EQ(expected ? "" : expected.error().code, fetched ? "" : fetched.error().code);
    if (!fetched) return;
    size_t bytes = 0;
    for (const Bytes& batch : *fetched) bytes += batch.size();
    ASSERT_TRUE(bytes <= max_bytes || fetched->size() == 1) << bytes << " of " << max_bytes;
    auto all = records_of(*expected), some = records_of(*fetched);
    ASSERT_EQ(all.empty(), some.empty());
    if (some.empty()) return;
    ASSERT_TRUE(max_bytes < (1u << 30) || all.rbegin()->first == some.rbegin()->first) << "everything was asked for";
    // The first batch may begin earlier, in either.
    const int64_t first = std::max(all.begin()->first, some.begin()->first);
    ASSERT_LE(first, static_cast<int64_t>(offset));
    all.erase(all.begin(), all.lower_bound(first));
    all.erase(all.upper_bound(some.rbegin()->first), all.end());
    some.erase(some.begin(), some.lower_bound(first));
    ASSERT_EQ(all, some);
  }
  void compare_all() {
    for (const Home& one : homes)
      for (Table table : {Table::kGroups, Table::kMeta, Table::kTimers}) compare_rows(table, one.prefix());
    compare_rows(Table::kTopics, "");
    for (const Known& topic : topics)
      for (uint32_t i = 0; i <= topic.partitions.size(); ++i) compare_partition({topic.id, i}, &topic);
    if (!gone.empty()) compare_partition({gone.back(), 0}, nullptr);
  }
  /// Partition ids of commits that were refused are given again after a restart.
  void forget_refused_topics() {
    auto view = model.view();
    auto there = [&](const Known& topic) {
      return view->partition({topic.id, static_cast<uint32_t>(topic.partitions.size() - 1)}).has_value();
    };
    for (Known& topic : topics)
      while (!topic.partitions.empty() && !there(topic)) topic.partitions.pop_back();
    std::erase_if(topics, [](const Known& topic) { return topic.partitions.empty(); });
  }
  void step() {
    commit_some();
    clock.advance(std::chrono::milliseconds(chance(3) ? pick(13ll * 3600 * 1000) : pick(2'000)));
    if (chance(5)) trim_some();
    if (chance(8)) keep();
    if (chance(3)) {
      if (chance(50))
        durable->stop();
      else
        durable->crash();
      durable->start();
      forget_refused_topics();
      ++outcomes["restarts"];
      compare_all();
    } else if (chance(10)) {
      compare_all();
    }
  }

  const uint64_t seed = tests::random_seed();
  std::mt19937_64 random{seed};
  MemoryCommitLog model{clock};
  std::vector<Home> homes;
  std::vector<Known> topics;
  std::vector<Uuid> gone;
  std::vector<Versions> seen_versions;
  std::map<Version, Version> real_by_model, model_by_real;
  std::map<std::string, int> outcomes;
};

TEST_F(CommitModel, TheDurableLogDoesWhatTheModelDoes) {
  options.lead = chance(50);
  open();
  const int steps = std::getenv("MILLRACE_TEST_LONG") != nullptr ? 4'000 : 600;
  for (int i = 0; i < steps && !HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("step {}", i));
    step();
  }
  compare_all();
  for (const auto& [outcome, count] : outcomes) RecordProperty(outcome, count);
  for (const char* outcome : {"accepted", "replayed", "CONDITION_FAILED", "FENCED", "UNKNOWN_TOPIC_OR_PARTITION",
                              "IDEMPOTENCY_KEY_REUSED", "CORRUPT_MESSAGE", "INVALID_RECORD", "MESSAGE_TOO_LARGE",
                              "restarts", "trims", "removed segments", "moved bytes", "compacted bytes"})
    EXPECT_GT(outcomes[outcome], 0) << outcome << " was never met";
}

/// Callers that lead, and the commit thread: the same commits come to the same end.
TEST_F(CommitModel, LeadersAndTheCommitThreadAgree) {
  options.lead = true;
  open();
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    Pair pair = some_commit();
    auto expected = model.submit_and_wait(std::move(pair.model));
    expect_same(expected, log().submit_and_wait(std::move(pair.real)));
    if (i % 50 == 49) compare_all();
  }
  EXPECT_GT(log().stats().led, 0u);
}

}  // namespace
}  // namespace millrace::bus
