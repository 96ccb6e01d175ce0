#include <gtest/gtest.h>

#include "bus/record_batch.h"
#include "proto/bus.pb.h"
#include "tests/bus/carriers.h"

namespace millrace::bus {
namespace {

using store::Table;

/// The contract of a CommitLog, one test a clause. Written against the interface.
class CommitContract : public ::testing::TestWithParam<Carrier> {
 protected:
  ManualClock clock;
  CarrierUnderTest carrier{GetParam(), clock};
  CommitLog& log = carrier.log();
  Home home = *Home::make(HomeKind::kGroup, "g");

  Commit put(ByteView key, ByteView value) {
    Commit commit(home);
    commit.state.push_back({Table::kGroups, home.key(key), Bytes(value)});
    return commit;
  }
  std::optional<Row> get(ByteView key) { return *log.view()->get(Table::kGroups, home.key(key)); }

  Uuid create_topic(std::string_view name, uint32_t partitions, const proto::TopicConfig& config = {}) {
    Uuid id;
    auto created = try_create_topic(name, partitions, config, id);
    EXPECT_TRUE(created) << to_string(created.error());
    return id;
  }
  CommitResult try_create_topic(std::string_view name, uint32_t partitions, const proto::TopicConfig& config,
                                Uuid& id) {
    proto::TopicRow row;
    *row.mutable_config() = config;
    id = Uuid::random();
    row.set_id(Bytes(id.view()));
    row.set_name(std::string(name));
    uint32_t first = log.allocate_partition_ids(partitions);
    for (uint32_t i = 0; i < partitions; ++i) row.add_partitions(first + i);
    Home topic = *Home::make(HomeKind::kTopic, name);
    Commit commit(topic);
    commit.conditions.push_back({Table::kTopics, Bytes(topic.prefix()), kAbsent});
    commit.state.push_back({Table::kTopics, Bytes(topic.prefix()), row.SerializeAsString()});
    return log.submit_and_wait(std::move(commit));
  }
  std::string code_of(Commit commit) {
    auto result = log.submit_and_wait(std::move(commit));
    return std::string(result ? "" : result.error().code);
  }
  Commit produce(const TopicPartition& to, Bytes record_batch) {
    Commit commit(home);
    commit.appends.push_back({to, std::move(record_batch)});
    return commit;
  }

  static Bytes batch(int records) {
    BatchBuilder builder;
    for (int i = 0; i < records; ++i) {
      RecordView record;
      record.value = "value";
      builder.add(record);
    }
    return builder.finish();
  }
};

TEST_P(CommitContract, AStaleEpochIsFencedAndNothingIsWritten) {
  proto::LeaseRow lease;
  lease.set_epoch(2);
  Commit claim(home);
  claim.state.push_back({Table::kMeta, home.key("lease"), lease.SerializeAsString()});
  ASSERT_TRUE(log.submit_and_wait(std::move(claim)));

  Commit stale = put("k", "v");
  stale.fences.push_back({home.key("lease"), 1});
  EXPECT_EQ(log.submit_and_wait(std::move(stale)).error().code, "FENCED");
  EXPECT_FALSE(get("k").has_value());
  Commit current = put("k", "v");
  current.fences.push_back({home.key("lease"), 2});
  EXPECT_TRUE(log.submit_and_wait(std::move(current)));
}

TEST_P(CommitContract, AConflictNamesTheConditionAndWritesNothing) {
  Version first = log.submit_and_wait(put("k", "1"))->version;
  ASSERT_TRUE(log.submit_and_wait(put("k", "2")));
  Commit late = put("other", "3");
  late.conditions.push_back({Table::kGroups, home.key("k"), first});
  auto result = log.submit_and_wait(std::move(late));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kConflict);
  EXPECT_NE(result.error().message.find(to_hex(home.key("k"))), std::string::npos) << result.error().message;
  EXPECT_FALSE(get("other").has_value());
}

TEST_P(CommitContract, AbsenceIsACondition) {
  auto create = [&] {
    Commit commit = put("k", "v");
    commit.conditions.push_back({Table::kGroups, home.key("k"), kAbsent});
    return log.submit_and_wait(std::move(commit));
  };
  EXPECT_TRUE(create());
  EXPECT_EQ(create().error().code, "CONDITION_FAILED");
}

TEST_P(CommitContract, RowsOutsideTheHomeAreRefused) {
  Commit commit(home);
  commit.state.push_back({Table::kGroups, Home::make(HomeKind::kGroup, "gg")->key("k"), Bytes("v")});
  EXPECT_EQ(log.submit_and_wait(std::move(commit)).error().code, "HOME_VIOLATED");
}

TEST_P(CommitContract, StateAndEventsAppearTogether) {
  TopicPartition to{create_topic("t", 2), 1};
  auto before = log.view();
  Commit commit = put("k", "v");
  commit.appends.push_back({to, batch(3)});
  commit.appends.push_back({to, batch(2)});
  auto receipt = log.submit_and_wait(std::move(commit));
  ASSERT_TRUE(receipt) << to_string(receipt.error());
  ASSERT_EQ(receipt->appends.size(), 2u);
  EXPECT_EQ(receipt->appends[1].base_offset, 3u);
  auto after = log.view();
  EXPECT_EQ(after->partition(to)->high_watermark, 5u);
  EXPECT_EQ((*after->get(Table::kGroups, home.key("k")))->version, receipt->version);
  EXPECT_EQ(before->partition(to)->high_watermark, 0u) << "a view never changes";
  EXPECT_FALSE((*before->get(Table::kGroups, home.key("k"))).has_value());
}

TEST_P(CommitContract, FetchGivesWholeBatchesAndAtLeastOne) {
  TopicPartition from{create_topic("t", 1), 0};
  for (int i = 0; i < 3; ++i) {
    Commit commit(home);
    commit.appends.push_back({from, batch(4)});
    ASSERT_TRUE(log.submit_and_wait(std::move(commit)));
  }
  auto view = log.view();
  auto middle = view->fetch(from, 6, 1);
  ASSERT_TRUE(middle);
  ASSERT_EQ(middle->size(), 1u);
  EXPECT_EQ(read_batch_info(middle->front())->base_offset, 4);
  EXPECT_EQ(view->fetch(from, 0, 1u << 20)->size(), 3u);
  EXPECT_TRUE(view->fetch(from, 12, 1)->empty());
  EXPECT_EQ(view->fetch(from, 13, 1).error().code, "OFFSET_OUT_OF_RANGE");
  EXPECT_EQ(view->fetch({Uuid::random(), 0}, 0, 1).error().code, "UNKNOWN_TOPIC_OR_PARTITION");
}

TEST_P(CommitContract, ADeletedTopicMadeAgainIsAnotherOne) {
  TopicPartition old{create_topic("t", 1), 0};
  Home topic = *Home::make(HomeKind::kTopic, "t");
  Commit remove(topic);
  remove.state.push_back({Table::kTopics, Bytes(topic.prefix()), std::nullopt});
  ASSERT_TRUE(log.submit_and_wait(std::move(remove)));
  TopicPartition fresh{create_topic("t", 1), 0};
  Commit late(home);
  late.appends.push_back({old, batch(1)});
  EXPECT_EQ(log.submit_and_wait(std::move(late)).error().code, "UNKNOWN_TOPIC_OR_PARTITION");
  EXPECT_EQ(log.view()->partition(fresh)->high_watermark, 0u);
}

TEST_P(CommitContract, ADamagedBatchIsRefusedWholeCommit) {
  TopicPartition to{create_topic("t", 1), 0};
  Commit commit = put("k", "v");
  commit.appends.push_back({to, batch(1)});
  commit.appends.back().batch.back() ^= 1;
  EXPECT_EQ(log.submit_and_wait(std::move(commit)).error().code, "CORRUPT_MESSAGE");
  EXPECT_FALSE(get("k").has_value());
}

TEST_P(CommitContract, AnIdempotencyKeyAnswersTheFirstReceiptFor24Hours) {
  TopicPartition to{create_topic("t", 1), 0};
  auto produce = [&](char request) {
    Commit commit(home);
    commit.appends.push_back({to, batch(1)});
    commit.idempotency = IdempotencyKey{Bytes(32, 'k'), Bytes(32, request), "answer"};
    return log.submit_and_wait(std::move(commit));
  };
  EXPECT_FALSE(produce('a')->replayed);
  clock.advance(std::chrono::hours(24));
  auto again = produce('a');
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(again->answer, "answer");
  EXPECT_EQ(again->appends.at(0).base_offset, 0u);
  EXPECT_EQ(produce('b').error().code, "IDEMPOTENCY_KEY_REUSED");
  clock.advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(produce('a')->replayed);
  EXPECT_EQ(log.view()->partition(to)->high_watermark, 2u);
}

TEST_P(CommitContract, TimersAndOffsetsLieInTheHome) {
  Commit commit(home);
  commit.timers.push_back({5000, "id", Bytes("payload")});
  commit.offsets.push_back({"g", {Uuid{}, 3}, 77});
  ASSERT_TRUE(log.submit_and_wait(std::move(commit)));
  auto timers = log.view()->list(Table::kTimers, home.prefix(), "", 10);
  ASSERT_EQ(timers->size(), 1u);
  EXPECT_EQ(timers->front().first, timer_key(home, 5000, "id"));
  Commit cancel(home);
  cancel.timers.push_back({5000, "id", std::nullopt});
  ASSERT_TRUE(log.submit_and_wait(std::move(cancel)));
  EXPECT_TRUE(log.view()->list(Table::kTimers, home.prefix(), "", 10)->empty());
  EXPECT_EQ(log.view()->list(Table::kGroups, home.prefix(), "", 10)->size(), 1u);
}

TEST_P(CommitContract, DoneIsCalledOnceAlsoForARefusedCommit) {
  int calls = 0;
  Commit commit(home);
  commit.state.push_back({Table::kGroups, "outside", Bytes("v")});
  commit.done = [&](CommitResult result) {
    ++calls;
    EXPECT_FALSE(result);
  };
  log.submit(std::move(commit));
  EXPECT_EQ(calls, 1);
}

TEST_P(CommitContract, AWatchWakesOnceWhenItsPositionIsPassed) {
  TopicPartition at{create_topic("t", 2), 1};
  int wakes = 0;
  auto watch = log.watch({{at, 1}}, [&] { ++wakes; });
  ASSERT_TRUE(watch);
  for (int expected : {0, 1, 1}) {
    Commit commit(home);
    commit.appends.push_back({at, batch(1)});
    ASSERT_TRUE(log.submit_and_wait(std::move(commit)));
    EXPECT_EQ(wakes, expected);
  }
  auto late = log.watch({{at, 1}}, [&] { ++wakes; });
  EXPECT_EQ(wakes, 2) << "what is there already wakes at once";
  auto withdrawn = log.watch({{at, 3}}, [&] { ++wakes; });
  withdrawn->reset();
  auto gone = log.watch({{{Uuid::random(), 0}, 0}}, [&] { ++wakes; });
  EXPECT_EQ(wakes, 3) << "a partition that is not there will never move";
  Commit commit(home);
  commit.appends.push_back({at, batch(1)});
  ASSERT_TRUE(log.submit_and_wait(std::move(commit)));
  EXPECT_EQ(wakes, 3);
}

TEST_P(CommitContract, ADeletedTopicWakesItsWatches) {
  TopicPartition at{create_topic("t", 1), 0};
  int wakes = 0;
  auto watch = log.watch({{at, 0}}, [&] { ++wakes; });
  Commit remove(topic_home("t"));
  remove.state.push_back({Table::kTopics, Bytes(topic_home("t").prefix()), std::nullopt});
  ASSERT_TRUE(log.submit_and_wait(std::move(remove)));
  EXPECT_EQ(wakes, 1);
}

TEST_P(CommitContract, AppendsSeeTheTopicsAsTheirCommitLeavesThem) {
  proto::TopicRow row;
  Uuid id = Uuid::random();
  row.set_id(Bytes(id.view()));
  row.set_name("t");
  row.add_partitions(log.allocate_partition_ids(1));
  Home topic = topic_home("t");
  Commit create(topic);
  create.state.push_back({Table::kTopics, Bytes(topic.prefix()), row.SerializeAsString()});
  create.appends.push_back({{id, 0}, batch(2)});
  ASSERT_TRUE(log.submit_and_wait(std::move(create)));
  EXPECT_EQ(log.view()->partition({id, 0})->high_watermark, 2u);
  Commit remove(topic);
  remove.state.push_back({Table::kTopics, Bytes(topic.prefix()), std::nullopt});
  remove.appends.push_back({{id, 0}, batch(1)});
  EXPECT_EQ(log.submit_and_wait(std::move(remove)).error().code, "UNKNOWN_TOPIC_OR_PARTITION");
  EXPECT_TRUE(log.view()->partition({id, 0}).has_value());
}

TEST_P(CommitContract, TheOffsetForATimeIsThatOfTheFirstRecordNotBeforeIt) {
  TopicPartition at{create_topic("t", 1), 0};
  for (int64_t timestamp : {100, 300, 200}) {
    BatchBuilder builder;
    for (int64_t i : {0, 1}) {
      RecordView record;
      record.timestamp_ms = timestamp + i;
      record.value = "v";
      builder.add(record);
    }
    Commit commit(home);
    commit.appends.push_back({at, builder.finish()});
    ASSERT_TRUE(log.submit_and_wait(std::move(commit)));
  }
  auto view = log.view();
  EXPECT_EQ(view->offset_for_time(at, 0), 0u);
  EXPECT_EQ(view->offset_for_time(at, 101), 1u);
  EXPECT_EQ(view->offset_for_time(at, 201), 2u) << "times need not ascend";
  EXPECT_EQ(view->offset_for_time(at, 302), 6u);
}

TEST_P(CommitContract, ACommitOverTheMaximumSizeIsRefused) {
  EXPECT_EQ(code_of(put("k", Bytes(CarrierUnderTest::kMaxCommitBytes, 'v'))), "COMMIT_TOO_LARGE");
  EXPECT_EQ(code_of(put("k", Bytes(CarrierUnderTest::kMaxCommitBytes / 2, 'v'))), "");
}

TEST_P(CommitContract, ABatchOverTheTopicsMaximumIsRefused) {
  proto::TopicConfig config;
  config.set_max_message_bytes(static_cast<int64_t>(batch(2).size()));
  TopicPartition to{create_topic("t", 1, config), 0};
  EXPECT_EQ(code_of(produce(to, batch(3))), "MESSAGE_TOO_LARGE");
  EXPECT_EQ(code_of(produce(to, batch(2))), "");
  EXPECT_EQ(log.view()->partition(to)->high_watermark, 2u);
}

TEST_P(CommitContract, ACompactedTopicTakesNoRecordWithoutAKey) {
  proto::TopicConfig config;
  config.set_cleanup_policy("compact");
  TopicPartition to{create_topic("t", 1, config), 0};
  EXPECT_EQ(code_of(produce(to, batch(1))), "INVALID_RECORD");
  BatchBuilder builder;
  RecordView record;
  record.key = "k";
  builder.add(record);
  EXPECT_EQ(code_of(produce(to, builder.finish())), "");
  EXPECT_EQ(log.view()->fetch(to, 0, 1)->size(), 1u);
}

TEST_P(CommitContract, LogAppendTimeIsTheNodesTime) {
  proto::TopicConfig config;
  config.set_message_timestamp_type("LogAppendTime");
  TopicPartition to{create_topic("t", 1, config), 0};
  ASSERT_EQ(code_of(produce(to, batch(2))), "");
  clock.advance(std::chrono::milliseconds(5));
  ASSERT_EQ(code_of(produce(to, batch(2))), "");
  auto view = log.view();
  auto batches = *view->fetch(to, 0, 1u << 20);
  ASSERT_EQ(batches.size(), 2u);
  auto info = check_batch(batches.back());
  ASSERT_TRUE(info) << to_string(info.error());
  EXPECT_EQ(info->timestamp_type(), TimestampType::kLogAppendTime);
  EXPECT_EQ(info->max_timestamp_ms, clock.wall_ms());
  EXPECT_EQ(view->offset_for_time(to, clock.wall_ms()), 2u);
  EXPECT_EQ(view->offset_for_time(to, clock.wall_ms() + 1), 4u);
}

TEST_P(CommitContract, TopicsAreBoundedAndDeletingMakesRoom) {
  Uuid id;
  for (size_t i = 0; i < CarrierUnderTest::kMaxTopics; ++i) create_topic("t" + std::to_string(i), 1);
  EXPECT_EQ(try_create_topic("more", 1, {}, id).error().code, "TOO_MANY_TOPICS");
  Commit remove(topic_home("t0"));
  remove.state.push_back({Table::kTopics, Bytes(topic_home("t0").prefix()), std::nullopt});
  ASSERT_EQ(code_of(std::move(remove)), "");
  EXPECT_TRUE(try_create_topic("more", 1, {}, id));
}

TEST_P(CommitContract, PartitionsAreBounded) {
  Uuid id;
  create_topic("t", CarrierUnderTest::kMaxPartitions - 1);
  EXPECT_EQ(try_create_topic("more", 2, {}, id).error().code, "TOO_MANY_PARTITIONS");
  EXPECT_TRUE(try_create_topic("more", 1, {}, id));
  EXPECT_EQ(try_create_topic("none", 1, {}, id).error().code, "TOO_MANY_PARTITIONS");
}

TEST_P(CommitContract, IdempotencyKeysAreBoundedUntilTheyAreOld) {
  auto use = [&](size_t key) {
    Commit commit = put("k", "v");
    commit.idempotency = IdempotencyKey{Bytes(32, static_cast<char>(key)), Bytes(32, 'r'), ""};
    return code_of(std::move(commit));
  };
  for (size_t i = 0; i < CarrierUnderTest::kMaxIdempotencyKeys; ++i) ASSERT_EQ(use(i), "");
  EXPECT_EQ(use(100), "IDEMPOTENCY_FULL");
  EXPECT_EQ(use(0), "") << "a known key is answered";
  clock.advance(std::chrono::hours(48));
  EXPECT_EQ(use(100), "");
}

TEST_P(CommitContract, WatchesAreBoundedUntilTheyAreDropped) {
  TopicPartition at{create_topic("t", 1), 0};
  std::vector<std::unique_ptr<Watch>> watches;
  for (size_t i = 0; i < CarrierUnderTest::kMaxWatches; ++i) watches.push_back(*log.watch({{at, 0}}, [] {}));
  EXPECT_EQ(log.watch({{at, 0}}, [] { FAIL(); }).error().code, "TOO_MANY_WATCHES");
  watches.pop_back();
  EXPECT_TRUE(log.watch({{at, 0}}, [] {}));
}

INSTANTIATE_TEST_SUITE_P(Carriers, CommitContract, ::testing::Values(Carrier::kMemory, Carrier::kLed, Carrier::kThread),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST(Home, PrefixesDoNotOverlap) {
  EXPECT_FALSE(Home::make(HomeKind::kGroup, "a")->owns(Home::make(HomeKind::kGroup, "ab")->key("k")));
  EXPECT_FALSE(Home::make(HomeKind::kGroup, std::string_view("a\0b", 3)));
  EXPECT_FALSE(Home::make(HomeKind::kGroup, std::string(256, 'x')));
  EXPECT_EQ(Home::make(HomeKind::kGroup, "name")->id(), "name");
}

}  // namespace
}  // namespace millrace::bus
