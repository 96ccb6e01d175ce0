#include <algorithm>
#include <atomic>
#include <set>

#include "tests/worker/fixture.h"
#include "tests/worker/scripted.h"

namespace millrace::worker {
namespace {

/// Retries and dead letters, on a clock that only the test moves.
class Retry : public ::testing::TestWithParam<bus::Carrier> {
 protected:
  ManualClock clock;
  Health health{clock};
  Log log{GetParam(), clock};
  Options options;
  std::atomic<bool> works{false};
  std::atomic<int> attempts{0};
  bus::TopicPartition out;

  void SetUp() override {
    options.threads = 2;
    options.max_attempts = 3;
    options.step_deadline = std::chrono::hours(1);
    log.make_topic("in", 1);
    out = {log.make_topic("out", 1).id, 0};
  }
  /// Says every record; key "bad" throws until `works`.
  std::unique_ptr<WorkerPool> start() {
    auto processor = std::make_shared<Scripted>([this](const StepInput& input, const bus::Home&) -> StepResult {
      StepDraft draft;
      for (const Record& record : input.records) {
        if (record.record.key == "bad" && !works) {
          ++attempts;
          throw std::runtime_error("bad luck");
        }
        if (record.record.key == "odd") throw 42;
        if (record.record.key == "wrong")
          return tl::unexpected(StepFailure({ErrorKind::kInvalidArgument, "WRONG", "never"}));
        draft.appends.push_back(say(out, std::string(*record.record.key), std::string(*record.record.value)));
      }
      return draft;
    });
    return WorkerPool::start(log.get(), clock, health, {processor}, options).value();
  }
  std::vector<std::string> said() {
    std::vector<std::string> all;
    for (const auto& record : log.read("out")) all.push_back(record.key + record.value);
    return all;
  }
  void pass(std::chrono::milliseconds time, WorkerPool& pool) {
    clock.advance(time);
    pool.nudge();
  }
  size_t parked(const WorkerPool& pool) {
    size_t count = 0;
    for (const auto& worker : pool.describe().workers)
      for (const auto& partition : worker.partitions) count += partition.parked;
    return count;
  }
};

TEST_P(Retry, OtherKeysGoOnAndAKeysRecordsStayInOrder) {
  auto pool = start();
  log.produce("in", {{"a", "1"}, {"bad", "1"}, {"b", "1"}, {"bad", "2"}, {"a", "2"}});
  log.await_records("out", 3);
  EXPECT_EQ(said(), (std::vector<std::string>{"a1", "b1", "a2"}));
  await([&] { return parked(*pool) == 2; });
  log.produce("in", {{"bad", "3"}, {"c", "1"}});
  log.await_records("out", 4);
  works = true;
  pass(options.backoff_max, *pool);
  log.await_records("out", 7);
  EXPECT_EQ(said(), (std::vector<std::string>{"a1", "b1", "a2", "c1", "bad1", "bad2", "bad3"}));
  await([&] { return parked(*pool) == 0; });
  EXPECT_EQ(log.records_in("in.dlq"), 0u);
}

TEST_P(Retry, AttemptsAreCountedAcrossRestartsAndThenItIsADeadLetter) {
  auto pool = start();
  log.produce("in", {{"bad", "1"}, {"bad", "2"}});
  await([&] { return parked(*pool) == 2; });
  const int64_t first_failure = clock.wall_ms();
  for (int i = 0; i < 2; ++i) {
    pool.reset();
    clock.advance(options.backoff_max);
    pool = start();
    await([&] { return pool->stats().steps > 0; });  // The failure is durable, not only seen.
  }
  log.await_records("in.dlq", 1);
  auto letter = log.read("in.dlq").front();
  EXPECT_EQ(letter.key + letter.value, "bad1");
  EXPECT_EQ(letter.headers["millrace.error.code"], "EXCEPTION");
  EXPECT_EQ(letter.headers["millrace.error.message"], "bad luck");
  EXPECT_EQ(letter.headers["millrace.source.topic"], "in");
  EXPECT_EQ(letter.headers["millrace.source.offset"], "0");
  EXPECT_EQ(letter.headers["millrace.attempts"], "3");
  EXPECT_EQ(letter.headers["millrace.first.failure.ms"], std::to_string(first_failure));
  // The one behind it gets its own attempts.
  works = true;
  // Its first attempt may fail after the clock has moved, and its next one be due later still.
  await([&] {
    pass(options.backoff_max, *pool);
    return !said().empty();
  });
  EXPECT_EQ(said(), (std::vector<std::string>{"bad2"}));
}

TEST_P(Retry, WhatIsNotWorthRetryingIsADeadLetterAtOnce) {
  auto pool = start();
  log.produce("in", {{"a", "1"}, {"wrong", "1"}, {"a", "2"}, {"wrong", "2"}, {"b", "1"}});
  log.await_records("in.dlq", 2);
  log.await_records("out", 3);
  EXPECT_EQ(said(), (std::vector<std::string>{"a1", "a2", "b1"}));
  EXPECT_EQ(log.read("in.dlq")[1].headers["millrace.attempts"], "1");
  EXPECT_EQ(pool->stats().dead_letters, 2u);
}

TEST_P(Retry, ADeadLetterTopicThatIsDeletedIsMadeAgain) {
  auto pool = start();
  log.produce("in", {{"wrong", "1"}});
  log.await_records("in.dlq", 1);
  bus::Commit removal(bus::topic_home("in.dlq"));
  removal.state.push_back({store::Table::kTopics, Bytes(removal.home.prefix()), std::nullopt});
  ASSERT_TRUE(log.get().submit_and_wait(std::move(removal)));
  log.produce("in", {{"wrong", "2"}, {"a", "1"}});
  log.await_records("out", 1);
  log.await_records("in.dlq", 1);
  EXPECT_EQ(log.read("in.dlq")[0].value, "2");
}

TEST_P(Retry, AFullParkingStopsThePartitionAndSaysSo) {
  options.max_parked = 2;
  auto pool = start();
  log.produce("in", {{"bad", "1"}, {"bad", "2"}, {"a", "1"}, {"bad", "3"}, {"a", "2"}});
  log.await_records("out", 1);
  await([&] {
    for (const auto& worker : pool->describe().workers)
      for (const auto& partition : worker.partitions)
        return partition.state == PartitionStatus::State::kFull && partition.problem.starts_with("PARKED_FULL");
    return false;
  });
  EXPECT_EQ(said(), (std::vector<std::string>{"a1"}));
  works = true;
  pass(options.backoff_max, *pool);
  log.await_records("out", 5);
  auto all = said();
  EXPECT_EQ(std::count(all.begin(), all.end(), "a2"), 1);
  std::erase_if(all, [](const std::string& text) { return text[0] == 'a'; });
  EXPECT_EQ(all, (std::vector<std::string>{"bad1", "bad2", "bad3"}));
}

TEST_P(Retry, AStepWhoseCommitIsTooLargeIsMadeSmaller) {
  // A step whose commit is too large is made of fewer records, until each fits.
  options.max_commit_bytes = 3'000;
  auto pool = start();
  std::vector<std::pair<std::string, std::string>> records;
  for (int i = 0; i < 40; ++i) records.emplace_back("k", std::string(500, 'v') + std::to_string(i));
  log.produce("in", records);
  log.await_records("out", 40);
  auto all = log.read("out");
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(all[i].value, records[i].second);
  EXPECT_EQ(log.records_in("in.dlq"), 0u);
}

TEST_P(Retry, WhateverIsThrownIsAFailureOfTheStep) {
  options.max_attempts = 1;
  auto pool = start();
  log.produce("in", {{"odd", "1"}, {"a", "1"}});
  log.await_records("in.dlq", 1);
  log.await_records("out", 1);
  auto letters = log.read("in.dlq");
  EXPECT_EQ(letters[0].key, "odd");
  EXPECT_EQ(letters[0].headers["millrace.error.code"], "EXCEPTION");
}

TEST_P(Retry, ADeadLetterKeepsItsValueUnlessItIsTooLargeItself) {
  options.max_commit_bytes = 3'000;
  auto pool = start();
  log.produce("in", {{"wrong", "small"}, {"large", std::string(4'000, 'v')}, {"a", "1"}});
  log.await_records("in.dlq", 2);
  log.await_records("out", 1);
  auto letters = log.read("in.dlq");
  EXPECT_EQ(letters[0].key + letters[0].value, "wrongsmall");
  EXPECT_FALSE(letters[0].headers.contains("millrace.value.omitted"));
  EXPECT_EQ(letters[1].key + letters[1].value, "large");
  EXPECT_EQ(letters[1].headers["millrace.value.omitted"], "4000");
  EXPECT_EQ(letters[1].headers["millrace.error.code"], "COMMIT_TOO_LARGE");
}

INSTANTIATE_TEST_SUITE_P(Carriers, Retry, ::testing::Values(bus::Carrier::kMemory, bus::Carrier::kThread),
                         carrier_name);

}  // namespace
}  // namespace millrace::worker
