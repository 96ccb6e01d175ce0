// Retention, segments that are mostly dead, compaction and scrub, on the durable carrier.
#include "bus/log_keeper.h"

#include <spdlog/fmt/fmt.h>

#include <random>

#include "base/crc32c.h"
#include "tests/bus/pipeline_fixture.h"

namespace millrace::bus {
namespace {

constexpr int64_t kHourMs = 3600ll * 1000;

class Keeper : public PipelineFixture {
 protected:
  Keeper() {
    options.log.segment_bytes = 2'000;
    keeping.io_bytes_per_second = 0;
    keeping.scrub_bytes_per_second = 0;
  }
  void keep() {
    LogKeeper keeper(log(), durable->store(), clock, keeping);
    ASSERT_TRUE(keeper.run_once());
  }
  TopicPartition topic(std::string_view name, const proto::TopicConfig& config, uint32_t partitions = 1) {
    Uuid id = Uuid::random();
    EXPECT_EQ(code_of(topic_commit(log(), name, partitions, id, config)), "");
    return {id, 0};
  }
  static proto::TopicConfig retention(int64_t ms, std::optional<int64_t> bytes = std::nullopt) {
    proto::TopicConfig config;
    config.set_retention_ms(ms);
    if (bytes) config.set_retention_bytes(*bytes);
    config.set_segment_bytes(2'000);
    return config;
  }
  static proto::TopicConfig compacted(std::string_view policy = "compact") {
    proto::TopicConfig config;
    config.set_cleanup_policy(std::string(policy));
    config.set_segment_bytes(2'000);
    config.set_delete_retention_ms(kHourMs);
    return config;
  }
  /// One commit, so one batch.
  void append(const TopicPartition& to, Bytes records) {
    Commit commit(home);
    commit.appends.push_back({to, std::move(records)});
    ASSERT_EQ(code_of(std::move(commit)), "");
  }
  Bytes one(std::optional<ByteView> key, std::optional<ByteView> value, int64_t timestamp_ms = INT64_MIN) {
    BatchBuilder builder;
    RecordView record;
    record.timestamp_ms = timestamp_ms == INT64_MIN ? clock.wall_ms() : timestamp_ms;
    record.key = key;
    record.value = value;
    builder.add(record);
    return builder.finish();
  }
  void fill(const TopicPartition& to, int records, size_t bytes = 500) {
    for (int i = 0; i < records; ++i) append(to, one("k", Bytes(bytes, 'v')));
  }
  PartitionState state(const TopicPartition& of) { return *log().view()->partition(of); }
  /// "offset key=value" of all that can be read, checked as a reader would.
  std::vector<std::string> read(const TopicPartition& of) {
    std::vector<std::string> found;
    auto view = log().view();
    auto batches = view->fetch(of, view->partition(of)->log_start, 1u << 30);
    EXPECT_TRUE(batches) << to_string(batches.error());
    if (!batches) return found;
    for (const Bytes& batch : *batches) {
      auto info = check_batch(batch);
      EXPECT_TRUE(info);
      RecordView record;
      for (RecordReader reader(*info, batch); reader.more();) {
        EXPECT_TRUE(reader.next(record));
        found.push_back(fmt::format("{} {}={}", record.offset, record.key.value_or("-"), record.value.value_or("-")));
      }
    }
    return found;
  }
  size_t segments() {
    LogKeeper keeper(log(), durable->store(), clock, keeping);
    return plan_retention(*log().store_view(), options.log, clock.wall_ms())->segments;
  }
  void restart() {
    durable->crash();
    durable->start();
  }

  LogKeeper::Options keeping;
};

TEST_F(Keeper, RemovesClosedSegmentsThatAreTooOld) {
  open();
  auto place = topic("t", retention(10 * kHourMs));
  fill(place, 9);
  clock.advance(std::chrono::hours(6));
  fill(place, 3);
  keep();
  EXPECT_EQ(state(place).log_start, 0u);
  clock.advance(std::chrono::hours(5));
  keep();
  EXPECT_EQ(state(place).log_start, 8u) << "the segment of the ninth record is younger";
  EXPECT_EQ(state(place).high_watermark, 12u);
  EXPECT_EQ(log().view()->fetch(place, 7, 1).error().code, "OFFSET_OUT_OF_RANGE");
  EXPECT_EQ(read(place).size(), 4u);
  restart();
  EXPECT_EQ(state(place).log_start, 8u);
  EXPECT_EQ(read(place).size(), 4u);
}

TEST_F(Keeper, ClosesAnOpenSegmentThatNobodyWritesToAnyMore) {
  open();
  auto place = topic("t", retention(kHourMs));
  fill(place, 1);
  clock.advance(std::chrono::minutes(61));
  keep();
  EXPECT_EQ(state(place).log_start, 1u);
  EXPECT_EQ(segments(), 0u);
}

TEST_F(Keeper, KeepsRetentionBytesOfEachPartition) {
  open();
  auto place = topic("t", retention(-1, 5'000), 2);
  fill(place, 40);
  fill({place.topic, 1}, 4);
  keep();
  const auto first = state(place), second = state({place.topic, 1});
  EXPECT_GE(first.bytes, 5'000u);
  EXPECT_LT(first.bytes, 5'000u + 2 * 2'600);
  EXPECT_EQ(first.high_watermark, 40u);
  EXPECT_EQ(second.log_start, 0u);
}

TEST_F(Keeper, TopicsOfOneClassEachKeepTheirOwnRetention) {
  open();
  auto brief = topic("brief", retention(2 * kHourMs)), lasting = topic("lasting", retention(20 * kHourMs));
  ASSERT_EQ(log_class_of(*log().store_view()->topics().at(brief.topic)),
            log_class_of(*log().store_view()->topics().at(lasting.topic)));
  for (int i = 0; i < 12; ++i) {
    fill(brief, 3, 200);
    fill(lasting, 1, 200);
  }
  clock.advance(std::chrono::hours(3));
  fill(lasting, 8);
  const size_t before = segments();
  keep();
  EXPECT_EQ(state(brief).log_start, state(brief).high_watermark);
  EXPECT_EQ(state(lasting).log_start, 0u);
  // Three quarters of the old segments are dead: what lives in them has moved, and they are gone.
  EXPECT_LT(segments(), before - 2);
  EXPECT_EQ(read(lasting).size(), 20u);
  restart();
  EXPECT_EQ(read(lasting).size(), 20u);
  EXPECT_EQ(state(brief).high_watermark, 36u);
}

/// A segment's row names all of its ranges: written once for each of them, many partitions would cost their square.
TEST_F(Keeper, ManySmallPartitionsLeaveASegmentTogether) {
  options.log.segment_bytes = 20'000;
  open();
  constexpr uint32_t kPartitions = 50;
  auto brief = retention(2 * kHourMs), lasting = retention(20 * kHourMs);
  brief.set_segment_bytes(20'000);
  lasting.set_segment_bytes(20'000);
  auto large = topic("large", brief), small = topic("small", lasting, kPartitions);
  for (uint32_t i = 0; i < kPartitions; ++i) append({small.topic, i}, one("k", "v" + std::to_string(i)));
  fill(large, 40);
  clock.advance(std::chrono::hours(3));
  fill(large, 40);
  LogKeeper keeper(log(), durable->store(), clock, keeping);
  const uint64_t before = log().stats().groups;
  ASSERT_TRUE(keeper.run_once());
  EXPECT_GT(keeper.stats().moved_bytes, 0u);
  EXPECT_LT(log().stats().groups - before, 10u);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < kPartitions; ++i)
      EXPECT_EQ(read({small.topic, i}), std::vector<std::string>{fmt::format("0 k=v{}", i)});
    restart();
  }
}

TEST_F(Keeper, ATimestampInTheFutureKeepsNothing) {
  open();
  auto place = topic("t", retention(10 * kHourMs));
  append(place, one("k", Bytes(3'000, 'v'), clock.wall_ms() + 1'000 * kHourMs));
  fill(place, 5);
  clock.advance(std::chrono::hours(11));
  keep();
  EXPECT_GE(state(place).log_start, 1u);
}

TEST_F(Keeper, ADeletedTopicLeavesNoSegment) {
  open();
  auto place = topic("t", compacted());
  fill(place, 12);
  keep();
  Commit commit(topic_home("t"));
  commit.state.push_back({Table::kTopics, Bytes(commit.home.prefix()), std::nullopt});
  ASSERT_EQ(code_of(std::move(commit)), "");
  clock.advance(std::chrono::hours(24 * 8));
  keep();
  keep();
  EXPECT_EQ(segments(), 0u);
  auto rows = log().store_view()->snapshot().scan(Table::kLogCompacted, "", "");
  rows->seek_to_first();
  EXPECT_FALSE(rows->valid());
}

TEST_F(Keeper, SegmentNumbersNeverComeAgain) {
  open();
  auto place = topic("t", retention(kHourMs));
  fill(place, 12);
  clock.advance(std::chrono::hours(2));
  keep();
  clock.advance(std::chrono::hours(2));
  keep();
  ASSERT_EQ(segments(), 0u);
  restart();
  fill(place, 1);
  const PartitionLog* found =
      log().store_view()->partitions().find(log().store_view()->topics().at(place.topic)->partition_ids[0]);
  EXPECT_GT(found->newest.segment, 3u);
}

TEST_F(Keeper, FilesAreFreedOnlyWhenNoOlderViewIsHeld) {
  open();
  auto place = topic("t", retention(kHourMs));
  Bytes noise(1'500, '\0');
  std::mt19937_64 random(1);
  // Each clean stop writes a file, and that many files are compacted out of level 0.
  for (int i = 0; i < 40; ++i) {
    for (char& byte : noise) byte = static_cast<char>(random());
    append(place, one("k", noise));
    if (i % 5 == 4) durable->stop(), durable->start();
  }
  auto old = log().view();
  clock.advance(std::chrono::hours(2));
  LogKeeper keeper(log(), durable->store(), clock, keeping);
  ASSERT_TRUE(keeper.run_once());
  ASSERT_TRUE(keeper.run_once());
  ASSERT_GT(keeper.stats().removed_segments, 10u);
  auto batches = old->fetch(place, 0, 1u << 30);
  ASSERT_TRUE(batches) << to_string(batches.error());
  EXPECT_EQ(batches->size(), 40u) << "an older view reads what it showed";
  const uint64_t before = durable->store().stats().disk_bytes;
  old.reset();
  // RocksDB's own threads have a part in it, in their time.
  while (durable->store().stats().disk_bytes >= before) {
    append(place, one("k", "v"));
    ASSERT_TRUE(keeper.run_once());
    std::this_thread::yield();
  }
}

// Faults that others met; the spec of the bus lists them.

TEST_F(Keeper, BusFault_TheHighWatermarkStaysWhenEverythingIsRemoved) {
  open();
  auto place = topic("t", retention(kHourMs));
  fill(place, 7);
  clock.advance(std::chrono::hours(2));
  keep();
  clock.advance(std::chrono::hours(2));
  keep();
  for (int round = 0; round < 3; ++round) {
    const auto now = state(place);
    EXPECT_EQ(now.log_start, 7u);
    EXPECT_EQ(now.high_watermark, 7u);
    EXPECT_EQ(now.bytes, 0u);
    EXPECT_TRUE(log().view()->fetch(place, 7, 100)->empty());
    EXPECT_EQ(log().view()->fetch(place, 6, 100).error().code, "OFFSET_OUT_OF_RANGE");
    EXPECT_EQ(*log().view()->offset_for_time(place, 0), 7u) << "a time before everything";
    EXPECT_EQ(*log().view()->offset_for_time(place, clock.wall_ms()), 7u);
    round % 2 == 0 ? restart() : (durable->stop(), durable->start());
  }
  append(place, one("k", "v"));
  EXPECT_EQ(read(place), std::vector<std::string>{"7 k=v"});
}

TEST_F(Keeper, BusFault_AReaderThatWaitsIsWokenAfterRetentionHasPassedIt) {
  open();
  auto place = topic("t", retention(kHourMs));
  fill(place, 7);
  bool woken = false;
  auto watch = log().watch({{place, 7}}, [&] { woken = true; });
  ASSERT_TRUE(watch);
  clock.advance(std::chrono::hours(2));
  keep();
  clock.advance(std::chrono::hours(2));
  keep();
  EXPECT_FALSE(woken);
  fill(place, 1);
  EXPECT_TRUE(woken);
}

TEST_F(Keeper, BusFault_TimesBeforeWhatIsKeptAnswerTheLogsStart) {
  open();
  auto place = topic("t", retention(10 * kHourMs));
  const int64_t first = clock.wall_ms();
  fill(place, 8);
  clock.advance(std::chrono::hours(11));
  fill(place, 3);
  keep();
  ASSERT_EQ(state(place).log_start, 8u);
  EXPECT_EQ(*log().view()->offset_for_time(place, first), 8u);
  EXPECT_EQ(*log().view()->offset_for_time(place, 0), 8u);
}

TEST_F(Keeper, CompactionKeepsTheLastRecordOfEachKeyAtItsOffset) {
  open();
  auto place = topic("t", compacted());
  for (int i = 0; i < 60; ++i) append(place, one("k" + std::to_string(i % 3), "v" + std::to_string(i)));
  append(place, one("last", Bytes(3'000, 'v')));
  fill(place, 1);
  const uint64_t before = state(place).bytes;
  keep();
  const std::string large(3'000, 'v');
  EXPECT_LT(state(place).bytes, before - 2'000);
  const auto found = read(place);
  ASSERT_GE(found.size(), 4u);
  EXPECT_EQ(found[found.size() - 2], "60 last=" + large);
  for (const std::string kept : {"57 k0=v57", "58 k1=v58", "59 k2=v59"})
    EXPECT_NE(std::find(found.begin(), found.end(), kept), found.end()) << kept;
  EXPECT_EQ(std::find(found.begin(), found.end(), "0 k0=v0"), found.end());
  // Every offset can be asked for, also one whose record is gone.
  for (uint64_t offset = 0; offset < 62; ++offset) {
    auto batches = log().view()->fetch(place, offset, 1);
    ASSERT_TRUE(batches) << to_string(batches.error());
    auto info = *check_batch(batches->front());
    EXPECT_LE(info.base_offset, static_cast<int64_t>(offset));
    EXPECT_GT(info.next_offset(), static_cast<int64_t>(offset));
  }
  restart();
  EXPECT_EQ(read(place), found);
}

TEST_F(Keeper, ACleanedLogIsNotCleanedAgainUntilHalfOfItIsNew) {
  open();
  auto place = topic("t", compacted());
  for (int i = 0; i < 12; ++i) append(place, one("k" + std::to_string(i), Bytes(500, 'v')));
  keep();
  LogKeeper keeper(log(), durable->store(), clock, keeping);
  ASSERT_TRUE(keeper.run_once());
  EXPECT_EQ(keeper.stats().cleaned_bytes, 0u);
  restart();
  LogKeeper after(log(), durable->store(), clock, keeping);
  ASSERT_TRUE(after.run_once());
  EXPECT_EQ(after.stats().cleaned_bytes, 0u);
}

TEST_F(Keeper, MoreKeysThanFitTakeSeveralPasses) {
  keeping.compaction_memory_bytes = 1'000;
  open();
  auto place = topic("t", compacted());
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 40; ++i) append(place, one("k" + std::to_string(i), Bytes(100, 'v')));
  fill(place, 6);
  LogKeeper keeper(log(), durable->store(), clock, keeping);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(keeper.run_once());
  std::map<std::string, int> seen;
  for (const std::string& record : read(place)) ++seen[record.substr(record.find(' '))];
  EXPECT_EQ(seen.size(), 41u);
}

/// Every look at it takes an hour.
class HastyClock final : public Clock {
 public:
  explicit HastyClock(const Clock& start) : wall_ms_(start.wall_ms()) {}
  int64_t wall_ms() const override { return wall_ms_; }
  int64_t steady_ns() const override {
    if (looked) looked();
    wall_ms_ += kHourMs;
    return steady_ns_ += kHourMs * 1'000'000;
  }
  std::function<void()> looked;

 private:
  mutable int64_t wall_ms_, steady_ns_ = 0;
};

TEST_F(Keeper, RetentionDoesNotWaitForTheEndOfALongPass) {
  open();
  auto brief = topic("brief", retention(24 * kHourMs));
  fill(brief, 9);
  auto large = topic("large", compacted());
  for (int i = 0; i < 400; ++i) append(large, one("k" + std::to_string(i % 7), Bytes(9'000, 'v')));
  const uint32_t id = log().store_view()->topics().at(large.topic)->partition_ids[0];
  HastyClock hasty(clock);
  bool trimmed_meanwhile = false;
  hasty.looked = [&] {
    const bool trimmed = state(brief).log_start > 0;
    if (trimmed && log().store_view()->partitions().find(id)->clean_to == 0) trimmed_meanwhile = true;
  };
  LogKeeper keeper(log(), durable->store(), hasty, keeping);
  ASSERT_TRUE(keeper.run_once());
  EXPECT_TRUE(trimmed_meanwhile);
  EXPECT_LT(read(large).size(), 20u);
}

TEST_F(Keeper, ABatchOfMoreKeysThanFitIsTakenNevertheless) {
  keeping.compaction_memory_bytes = 1'000;
  open();
  auto place = topic("t", compacted());
  for (int round = 0; round < 2; ++round) {
    BatchBuilder builder;
    std::vector<std::string> keys;
    for (int i = 0; i < 40; ++i) keys.push_back("k" + std::to_string(i));
    for (const std::string& key : keys) {
      RecordView record;
      record.timestamp_ms = clock.wall_ms();
      record.key = key;
      record.value = "v";
      builder.add(record);
    }
    append(place, builder.finish());
  }
  fill(place, 6);
  LogKeeper keeper(log(), durable->store(), clock, keeping);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(keeper.run_once());
  EXPECT_LE(read(place).size(), 46u);
}

/// What a compressed batch holds is not looked at; it could be what the tombstone deletes.
TEST_F(Keeper, ATombstoneBehindACompressedBatchStays) {
  open();
  auto place = topic("t", compacted());
  append(place, one("before", std::nullopt));
  Bytes compressed = one("gone", "v");
  compressed[22] = static_cast<char>(Compression::kZstd);
  store_be(compressed.data() + 17, crc32c(ByteView(compressed).substr(21)));
  append(place, compressed);
  append(place, one("gone", std::nullopt));
  for (int i = 0; i < 3; ++i) append(place, one("k", Bytes(1'000, 'v')));
  LogKeeper keeper(log(), durable->store(), clock, keeping);
  auto tombstones = [&] {
    size_t found = 0;
    auto batches = *log().view()->fetch(place, 0, 1u << 30);
    for (const Bytes& batch : batches) {
      auto info = check_batch(batch);
      RecordView record;
      for (RecordReader reader(*info, batch); info->compression() == Compression::kNone && reader.more();)
        found += reader.next(record) && !record.value ? 1 : 0;
    }
    return found;
  };
  ASSERT_TRUE(keeper.run_once());
  EXPECT_EQ(tombstones(), 2u);
  clock.advance(std::chrono::minutes(61));
  ASSERT_TRUE(keeper.run_once());
  EXPECT_EQ(tombstones(), 1u);
  const uint64_t cleaned = keeper.stats().cleaned_bytes;
  ASSERT_TRUE(keeper.run_once());
  EXPECT_EQ(keeper.stats().cleaned_bytes, cleaned) << "it is not read again and again";
}

TEST_F(Keeper, BusFault_ATombstoneStaysUntilItsTimeByTheNodesClock) {
  open();
  auto place = topic("t", compacted());
  append(place, one("gone", "v"));
  // Its client lives in the year 2500, or in 1970: neither counts.
  append(place, one("gone", std::nullopt, clock.wall_ms() + 500ll * 365 * 24 * kHourMs));
  append(place, one("old", "v"));
  append(place, one("old", std::nullopt, 0));
  fill(place, 10);
  LogKeeper keeper(log(), durable->store(), clock, keeping);
  ASSERT_TRUE(keeper.run_once());
  auto has = [&](std::string_view record) {
    auto all = read(place);
    return std::find(all.begin(), all.end(), record) != all.end();
  };
  EXPECT_FALSE(has("0 gone=v"));
  EXPECT_TRUE(has("1 gone=-"));
  EXPECT_TRUE(has("3 old=-"));
  clock.advance(std::chrono::minutes(59));
  ASSERT_TRUE(keeper.run_once());
  EXPECT_TRUE(has("1 gone=-"));
  EXPECT_TRUE(has("3 old=-"));
  clock.advance(std::chrono::minutes(2));
  ASSERT_TRUE(keeper.run_once());
  EXPECT_FALSE(has("1 gone=-"));
  EXPECT_FALSE(has("3 old=-"));
  EXPECT_EQ(state(place).high_watermark, 14u);
}

TEST_F(Keeper, ATopicThatBecomesCompactedIsCleanedWhereverItsRecordsLie) {
  open();
  auto place = topic("t", retention(-1));
  auto other = topic("other", retention(-1));
  for (int i = 0; i < 10; ++i) {
    append(place, one("k", Bytes(300, static_cast<char>('a' + i))));
    fill(other, 1, 300);
  }
  proto::TopicRow row = *parse_topic_row((*log().view()->get(Table::kTopics, topic_home("t").prefix()))->value);
  *row.mutable_config() = compacted();
  Commit commit(topic_home("t"));
  commit.state.push_back({Table::kTopics, Bytes(commit.home.prefix()), row.SerializeAsString()});
  ASSERT_EQ(code_of(std::move(commit)), "");
  fill(place, 8);
  keep();
  EXPECT_LE(read(place).size(), 6u);
  EXPECT_EQ(read(other).size(), 10u);
  restart();
  EXPECT_LE(read(place).size(), 6u);
  EXPECT_EQ(read(other).size(), 10u);
}

/// Moved segment by segment, in whatever order, and then cleaned.
TEST_F(Keeper, WhatWasMovedInPiecesIsCompactedAsAWhole) {
  for (const std::vector<int>& per_segment : {std::vector{3, 1, 2}, {1, 2, 3}, {2, 3, 1}, {3, 3, 3}}) {
    durable.reset();
    open();
    auto place = topic("t", retention(-1)), noise = topic("noise", retention(-1));
    int written = 0;
    for (int records : per_segment) {
      for (int i = 0; i < records; ++i) append(place, one("k" + std::to_string(written++ % 2), Bytes(200, 'v')));
      fill(noise, 4);
    }
    fill(noise, 8);
    Commit removal(topic_home("noise"));
    removal.state.push_back({Table::kTopics, Bytes(removal.home.prefix()), std::nullopt});
    ASSERT_EQ(code_of(std::move(removal)), "");
    keep();
    keep();
    EXPECT_EQ(read(place).size(), static_cast<size_t>(written));
    restart();
    proto::TopicRow row = *parse_topic_row((*log().view()->get(Table::kTopics, topic_home("t").prefix()))->value);
    *row.mutable_config() = compacted();
    Commit change(topic_home("t"));
    change.state.push_back({Table::kTopics, Bytes(change.home.prefix()), row.SerializeAsString()});
    ASSERT_EQ(code_of(std::move(change)), "");
    fill(place, 1);
    for (int i = 0; i < 3; ++i) keep();
    EXPECT_LE(read(place).size(), 4u) << per_segment[0] << per_segment[1] << per_segment[2];
    restart();
    EXPECT_LE(read(place).size(), 4u);
  }
}

TEST_F(Keeper, CompactAndDeleteDoBoth) {
  open();
  auto config = compacted("compact,delete");
  config.set_retention_ms(10 * kHourMs);
  auto place = topic("t", config);
  for (int i = 0; i < 12; ++i) append(place, one("k" + std::to_string(i % 4), Bytes(500, 'v')));
  keep();
  EXPECT_LE(read(place).size(), 8u);
  clock.advance(std::chrono::hours(11));
  fill(place, 1);
  keep();
  clock.advance(std::chrono::hours(11));
  keep();
  EXPECT_GE(state(place).log_start, 12u);
}

TEST_F(Keeper, LogAppendTimeSurvivesCompaction) {
  open();
  auto config = compacted();
  config.set_message_timestamp_type("LogAppendTime");
  auto place = topic("t", config);
  std::map<int64_t, int64_t> times;
  for (int i = 0; i < 12; ++i) {
    times[i] = clock.wall_ms();
    append(place, one("k" + std::to_string(i % 5), Bytes(400, 'v'), 5));
    clock.advance(std::chrono::seconds(1));
  }
  fill(place, 6);
  keep();
  const auto batches = log().view()->fetch(place, 0, 1u << 30).value();
  int checked = 0;
  for (const Bytes& batch : batches) {
    auto info = *check_batch(batch);
    RecordView record;
    for (RecordReader reader(info, batch); reader.more();) {
      ASSERT_TRUE(reader.next(record));
      if (record.offset >= 12) continue;
      EXPECT_EQ(record.timestamp_ms, times[record.offset]);
      ++checked;
    }
  }
  EXPECT_GE(checked, 5);
}

TEST_F(Keeper, TheScrubReadsEverything) {
  open();
  auto place = topic("t", retention(-1), 3);
  fill(place, 20);
  fill({place.topic, 2}, 5);
  LogKeeper keeper(log(), durable->store(), clock, keeping);
  ASSERT_TRUE(keeper.scrub_once());
  EXPECT_EQ(keeper.stats().scrub_rounds, 1u);
  EXPECT_GE(keeper.stats().scrubbed_bytes, state(place).bytes + state({place.topic, 2}).bytes);
  EXPECT_TRUE(keeper.damages().empty());
}

TEST_F(Keeper, RunsOnItsThreadAndStops) {
  keeping.interval = std::chrono::milliseconds(1);
  open();
  auto place = topic("t", retention(-1, 3'000));
  LogKeeper keeper(log(), durable->store(), SystemClock::instance(), keeping);
  keeper.start(durable->health());
  fill(place, 40);
  while (state(place).log_start == 0) std::this_thread::yield();
  durable->health().check();
  keeper.stop();
  EXPECT_EQ(state(place).high_watermark, 40u);
}

}  // namespace
}  // namespace millrace::bus
