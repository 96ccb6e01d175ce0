// Faults that others met in their logs, as the bus's specification lists them, each a test with its name. Those of
// retention and compaction are in log_keeper_test.cc (BusFault_..), those of groups in tests/group.
#include "bus/idempotency.h"
#include "bus/log_keeper.h"
#include "tests/bus/pipeline_fixture.h"

namespace millrace::bus {
namespace {

class BusFaults : public PipelineFixture {
 protected:
  CommitReceipt append(const TopicPartition& to, Bytes records, const std::string& key = "") {
    Commit commit(home);
    commit.appends.push_back({to, std::move(records)});
    if (!key.empty()) {
      Bytes digest(32, 'k');
      digest.replace(0, key.size(), key);
      commit.idempotency = IdempotencyKey{std::move(digest), Bytes(32, 'r'), "answer"};
    }
    auto receipt = log().submit_and_wait(std::move(commit));
    EXPECT_TRUE(receipt) << to_string(receipt.error());
    return receipt ? *receipt : CommitReceipt{};
  }
  std::string fetch_code(const TopicPartition& from, uint64_t offset) {
    auto fetched = log().view()->fetch(from, offset, 1 << 20);
    return std::string(fetched ? "" : fetched.error().code);
  }
  void crash() {
    durable->crash();
    durable->start();
  }
};

TEST_F(BusFaults, DuplicateAfterARetryWhenKilledDuringAnIdempotentProduce) {
  open();
  const TopicPartition to = create_topic("t");
  const CommitReceipt first = append(to, batch(3), "once");
  crash();  // Before the client heard the answer.
  const CommitReceipt again = append(to, batch(3), "once");
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.answer, "answer");
  EXPECT_EQ(again.appends.front().base_offset, first.appends.front().base_offset);
  EXPECT_EQ(log().view()->partition(to)->high_watermark, 3u);
}

TEST_F(BusFaults, AFetchAboveTheWatermarkIsAnErrorAndNotEmpty) {
  open();
  const TopicPartition to = create_topic("t");
  append(to, batch(3));
  EXPECT_EQ(fetch_code(to, 3), "") << "the end itself is where one waits";
  EXPECT_EQ(fetch_code(to, 4), "OFFSET_OUT_OF_RANGE");
  EXPECT_EQ(fetch_code(to, UINT64_MAX), "OFFSET_OUT_OF_RANGE");
}

TEST_F(BusFaults, AFetchIntoTheMiddleOfABatchLosesNoRecord) {
  open();
  const TopicPartition to = create_topic("t");
  append(to, batch(5));
  append(to, batch(5));
  for (uint64_t offset = 0; offset < 10; ++offset) {
    const auto batches = log().view()->fetch(to, offset, 1).value();
    std::vector<uint64_t> offsets;
    for (const Bytes& one : batches) {
      const BatchInfo info = *check_batch(one);
      RecordView record;
      for (RecordReader reader(info, one); reader.more();) {
        ASSERT_TRUE(reader.next(record));
        offsets.push_back(static_cast<uint64_t>(record.offset));
      }
    }
    EXPECT_NE(std::find(offsets.begin(), offsets.end(), offset), offsets.end()) << offset;
  }
}

TEST_F(BusFaults, ATopicDeletedAndMadeAgainUnderAWaitingReaderIsAnotherOne) {
  open();
  const TopicPartition old = create_topic("t");
  append(old, batch(3));
  int woken = 0;
  auto watch = log().watch({{old, 3}}, [&] { ++woken; });
  ASSERT_TRUE(watch);
  Commit removal(topic_home("t"));
  removal.state.push_back({Table::kTopics, Bytes(removal.home.prefix()), std::nullopt});
  ASSERT_EQ(code_of(std::move(removal)), "");
  EXPECT_EQ(woken, 1) << "there is nothing to wait for any more";
  const TopicPartition made_again = create_topic("t");
  append(made_again, batch(1));
  EXPECT_EQ(fetch_code(old, 0), "UNKNOWN_TOPIC_OR_PARTITION");
  EXPECT_EQ(log().view()->partition(made_again)->high_watermark, 1u);
  EXPECT_EQ(log().watch({{old, 3}}, [&] { ++woken; }).has_value(), true);
  EXPECT_EQ(woken, 2) << "told at once";
}

TEST_F(BusFaults, AFullDiskIsSaidToBeOneAndARetryIsSafe) {
  open();
  durable->stop();
  std::atomic<uint64_t> free_bytes{1ull << 30};
  durable->reserve_bytes = 1 << 20;
  durable->free_bytes = [&] { return free_bytes.load(); };
  durable->start();
  const TopicPartition to = create_topic("t");
  free_bytes = 0;
  Commit commit(home);
  // So much that the disk is looked at.
  for (int i = 0; i < 3; ++i) commit.appends.push_back({to, batch(1, Bytes(900'000, 'v'))});
  auto refused = log().submit_and_wait(std::move(commit));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "DISK_RESERVE");
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable) << "nothing was done";
  EXPECT_NE(refused.error().message.find("MiB free"), std::string::npos) << refused.error().message;
  EXPECT_EQ(log().view()->partition(to)->high_watermark, 0u);
  free_bytes = 1ull << 30;
  append(to, batch(1));
}

/// Whatever writes a batch again must not give damaged bytes a good checksum.
TEST_F(BusFaults, AFlippedBitIsNotHiddenByComputingTheChecksumAgain) {
  options.log.segment_bytes = 2'000;
  open();
  proto::TopicConfig config;
  config.set_cleanup_policy("compact");
  config.set_segment_bytes(2'000);
  const Uuid id = Uuid::random();
  ASSERT_EQ(code_of(topic_commit(log(), "t", 1, id, config)), "");
  const TopicPartition to{id, 0};
  for (int i = 0; i < 12; ++i) {
    BatchBuilder builder;
    RecordView record;
    const Bytes value(400, 'v');
    record.key = "k";
    record.value = value;
    builder.add(record);
    append(to, builder.finish());
  }
  durable->crash();
  durable->start();
  // A bit of the third batch, where the store has no reason to look.
  const Bytes key = log_key(kCompactedClass | 1, 1, 1, 2);
  Bytes stored = *log().store_view()->snapshot().get(Table::kLogCompacted, key).value();
  stored[stored.size() - 10] = static_cast<char>(stored[stored.size() - 10] ^ 1);
  store::WriteBatch flip;
  flip.put(Table::kLogCompacted, key, stored);
  ASSERT_TRUE(durable->store().write(flip, store::Durability::kSync));
  ASSERT_TRUE(log().submit_and_wait(put("k", "v")));  // A view that shows it.

  LogKeeper::Options keeping;
  keeping.io_bytes_per_second = keeping.scrub_bytes_per_second = 0;
  LogKeeper keeper(log(), durable->store(), clock, keeping);
  ASSERT_TRUE(keeper.run_once());
  ASSERT_EQ(keeper.damages().size(), 1u) << "compaction met it";
  EXPECT_NE(keeper.damages().front().find("partition 0"), std::string::npos) << keeper.damages().front();
  const auto batches = log().view()->fetch(to, 2, 1).value();
  EXPECT_FALSE(check_batch(batches.front())) << "a reader still sees that it is damaged";
  LogKeeper scrubber(log(), durable->store(), clock, keeping);
  ASSERT_TRUE(scrubber.scrub_once());
  EXPECT_EQ(scrubber.damages().size(), 1u);
  EXPECT_EQ(scrubber.stats().damages, 1u);
}

TEST_F(BusFaults, AForgedCountOrLengthAllocatesNothing) {
  open();
  const TopicPartition to = create_topic("t");
  for (size_t at : {size_t{8}, size_t{23}, size_t{57}}) {  // Length, last offset delta, record count.
    Bytes forged = batch(1);
    store_be(forged.data() + at, int32_t{INT32_MAX});
    Commit commit(home);
    commit.appends.push_back({to, forged});
    EXPECT_EQ(code_of(std::move(commit)), "CORRUPT_MESSAGE") << at;
  }
  EXPECT_EQ(log().view()->partition(to)->high_watermark, 0u);
}

TEST_F(BusFaults, AHandlersExceptionPoisonsNothing) {
  for (bool lead : {false, true}) {
    options.lead = lead;
    open();
    Commit throwing = put("k", "1");
    throwing.done = [](const CommitResult&) { throw std::runtime_error("of a handler"); };
    log().submit(std::move(throwing));
    EXPECT_EQ(code_of(put("other", "2")), "");
    EXPECT_EQ(get("k")->value, "1");
    EXPECT_EQ(log().stats().waiting, 0);
  }
}

}  // namespace
}  // namespace millrace::bus
