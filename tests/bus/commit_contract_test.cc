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

  Uuid create_topic(std::string_view name, uint32_t partitions) {
    proto::TopicRow row;
    Uuid id = Uuid::random();
    row.set_id(Bytes(id.view()));
    row.set_name(std::string(name));
    uint32_t first = log.allocate_partition_ids(partitions);
    for (uint32_t i = 0; i < partitions; ++i) row.add_partitions(first + i);
    Home topic = *Home::make(HomeKind::kTopic, name);
    Commit commit(topic);
    commit.conditions.push_back({Table::kTopics, Bytes(topic.prefix()), kAbsent});
    commit.state.push_back({Table::kTopics, Bytes(topic.prefix()), row.SerializeAsString()});
    EXPECT_TRUE(log.submit_and_wait(std::move(commit)));
    return id;
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
