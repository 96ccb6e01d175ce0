#include "tests/worker/fixture.h"

namespace millrace::worker {
namespace {

class Pool : public ::testing::TestWithParam<bus::Carrier> {
 protected:
  SystemClock& clock = SystemClock::instance();
  Health health{clock};
  Log log{GetParam(), clock};

  std::unique_ptr<WorkerPool> start(std::shared_ptr<const Processor> processor, Options options = {}) {
    return WorkerPool::start(log.get(), clock, health, {std::move(processor)}, options).value();
  }
};

TEST_P(Pool, EveryRecordIsCountedOnceAndTheCountsAreSaidInOrder) {
  log.make_topic("in", 4);
  log.make_topic("out", 4, "compact");
  auto pool = start(std::make_shared<tests::Counter>("in", "out"));
  for (int i = 0; i < 50; ++i) log.produce("in", {{"a", "1"}, {"b", "2"}, {"c", "3"}});
  log.await_records("out", 150);
  std::map<std::string, uint64_t> last;
  for (const auto& said : log.read("out")) EXPECT_EQ(std::stoull(said.value), ++last[said.key]) << said.key;
  EXPECT_EQ(last, (std::map<std::string, uint64_t>{{"a", 50}, {"b", 50}, {"c", 50}}));
  pool.reset();
  EXPECT_EQ(log.records_in("out"), 150u);
}

TEST_P(Pool, AProcessorWaitsForItsTopics) {
  auto pool = start(std::make_shared<tests::Counter>("in", "out"));
  ASSERT_EQ(pool->describe().processors.size(), 1u);
  EXPECT_NE(pool->describe().processors[0].problem.find("UNKNOWN_TOPIC"), std::string::npos);
  log.make_topic("in", 2);
  log.make_topic("out", 2);
  log.produce("in", {{"a", "1"}});
  pool->nudge();
  log.await_records("out", 1);
  EXPECT_EQ(pool->describe().processors[0].problem, "");
}

TEST_P(Pool, ANewPoolGoesOnWhereTheOldOneEnded) {
  log.make_topic("in", 4);
  log.make_topic("out", 4);
  auto counter = std::make_shared<tests::Counter>("in", "out");
  auto pool = start(counter);
  log.produce("in", {{"a", "1"}, {"b", "1"}});
  log.await_records("out", 2);
  EXPECT_EQ(pool->stop(std::chrono::hours(1)), 0u);
  pool = start(counter);
  log.produce("in", {{"a", "1"}, {"b", "1"}});
  log.await_records("out", 4);
  std::map<std::string, uint64_t> last;
  for (const auto& said : log.read("out")) EXPECT_EQ(std::stoull(said.value), ++last[said.key]) << said.key;
}

TEST_P(Pool, AStoppedWorkerIsReplacedAndItsPartitionsGoOn) {
  log.make_topic("in", 8);
  log.make_topic("out", 8);
  auto pool = start(std::make_shared<tests::Counter>("in", "out"));
  log.produce("in", {{"a", "1"}, {"b", "1"}});
  log.await_records("out", 2);
  const WorkerId first = pool->describe().workers.front().id;
  ASSERT_TRUE(pool->stop_worker(first));
  EXPECT_EQ(pool->stop_worker(first).error().code, "UNKNOWN_WORKER");
  log.produce("in", {{"a", "1"}, {"b", "1"}});
  log.await_records("out", 4);
  await([&] { return pool->describe().workers.size() == 4; });
  for (const auto& worker : pool->describe().workers) {
    EXPECT_NE(worker.id, first);
    EXPECT_EQ(worker.partitions.size(), 2u);
  }
}

TEST_P(Pool, ADeletedTopicStopsItsPartitionsAndANewOneStartsThem) {
  log.make_topic("in", 2);
  log.make_topic("out", 2);
  auto pool = start(std::make_shared<tests::Counter>("in", "out"));
  log.produce("in", {{"a", "1"}});
  log.await_records("out", 1);
  bus::Commit remove(bus::topic_home("in"));
  remove.state.push_back({store::Table::kTopics, Bytes(remove.home.prefix()), std::nullopt});
  ASSERT_TRUE(log->submit_and_wait(std::move(remove)));
  await([&] { return pool->describe().processors[0].problem.find("UNKNOWN_TOPIC") != std::string::npos; });
  log.make_topic("in", 2);
  log.produce("in", {{"a", "1"}});
  pool->nudge();
  log.await_records("out", 2);
}

TEST_P(Pool, APartitionThatMovedAwayAndBackCountsFromItsRows) {
  log.make_topic("in", 1);
  log.make_topic("out", 1);
  Options options;
  options.threads = 2;
  auto pool = start(std::make_shared<tests::Counter>("in", "out"), options);
  for (uint64_t round = 1; round <= 20; ++round) {
    log.produce("in", {{"a", "1"}});
    log.await_records("out", round);
    for (const auto& worker : pool->describe().workers)
      if (!worker.partitions.empty()) {
        ASSERT_TRUE(pool->stop_worker(worker.id));
        break;
      }
  }
  uint64_t last = 0;
  for (const auto& said : log.read("out")) EXPECT_EQ(std::stoull(said.value), ++last);
  EXPECT_EQ(last, 20u);
}

INSTANTIATE_TEST_SUITE_P(Carriers, Pool, ::testing::Values(bus::Carrier::kMemory, bus::Carrier::kThread), carrier_name);

TEST(PoolGap, WhereRetentionWasQuickerItGoesOnAtTheLogsStartAndCountsWhatItMissed) {
  SystemClock& clock = SystemClock::instance();
  Health health(clock);
  Log log(bus::Carrier::kMemory, clock);
  const bus::TopicPartition in{log.make_topic("in", 1).id, 0};
  log.make_topic("out", 1);
  const std::vector<std::shared_ptr<const Processor>> counter{std::make_shared<tests::Counter>("in", "out")};
  auto pool = WorkerPool::start(log.get(), clock, health, counter, {}).value();
  log.produce("in", {{"a", "1"}});
  log.await_records("out", 1);
  pool.reset();
  for (int i = 0; i < 5; ++i) log.produce("in", {{"a", "1"}});
  log.memory().trim({in, 4});
  pool = WorkerPool::start(log.get(), clock, health, counter, {}).value();
  log.await_records("out", 3);
  EXPECT_EQ(pool->stats().gaps, 1u);
  EXPECT_EQ(pool->stats().records_lost, 3u);
  EXPECT_EQ(log.read("out").back().value, "3");
}

}  // namespace
}  // namespace millrace::worker
