#include <cstdlib>
#include <random>
#include <set>

#include "tests/support/random_seed.h"
#include "tests/worker/fixture.h"

namespace millrace::worker {
namespace {

/// Breaks one worker at a time, where and when the drill says.
class Faults final : public FaultPoints {
 public:
  enum class Kind { kHang, kKill };
  ~Faults() override { release(); }

  void at(Point point, WorkerId worker, std::string_view, uint32_t) override {
    std::unique_lock lock(mutex_);
    if (!armed_ || point != point_ || worker != worker_) return;
    armed_ = false;
    if (kind_ == Kind::kKill) throw WorkerKilled{};
    const uint64_t generation = generation_;
    changed_.wait(lock, [&] { return generation_ != generation; });
  }
  void arm(Kind kind, Point point, WorkerId worker) {
    std::lock_guard lock(mutex_);
    armed_ = true;
    kind_ = kind;
    point_ = point;
    worker_ = worker;
  }
  /// Those that hang go on.
  void release() {
    std::lock_guard lock(mutex_);
    ++generation_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false;
  Kind kind_ = Kind::kHang;
  Point point_ = Point::kBeforeStep;
  WorkerId worker_ = 0;
  uint64_t generation_ = 0;
};

constexpr uint32_t kPartitions = 16;

int events() {
  const char* set = std::getenv("MILLRACE_DRILL_EVENTS");
  return set ? std::atoi(set) : 20;
}

class Drill : public ::testing::TestWithParam<bus::Carrier> {
 protected:
  SystemClock& clock = SystemClock::instance();
  Health health{clock};
  Log log{GetParam(), clock};
  Faults faults;
  std::map<std::string, uint64_t> sent;

  void load(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::pair<std::string, std::string>> records;
      for (int key = 0; key < 64; ++key) {
        const std::string name = "k" + std::to_string(key);
        records.emplace_back(name, "x");
        ++sent[name];
      }
      log.produce("in", records);
    }
  }
  uint64_t total() const {
    uint64_t total = 0;
    for (const auto& [key, count] : sent) total += count;
    return total;
  }
  /// Rows, topic and what was sent agree: each count once, in order.
  void expect_each_once() {
    std::map<std::string, uint64_t> last;
    for (const auto& said : log.read("out")) ASSERT_EQ(std::stoull(said.value), ++last[said.key]) << said.key;
    EXPECT_EQ(last, sent);
  }
};

TEST_P(Drill, WhicheverWorkerStopsHangsOrDiesEachEffectHappensOnce) {
  const uint64_t seed = tests::random_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  log.make_topic("in", kPartitions);
  log.make_topic("out", kPartitions);
  Options options;
  options.step_deadline = std::chrono::milliseconds(50);
  options.max_stuck = 1'000;
  auto pool =
      WorkerPool::start(log.get(), clock, health, {std::make_shared<tests::Counter>("in", "out")}, options, &faults)
          .value();
  // A view of the carrier in memory is a copy of everything: with many records it would take longer than the deadline.
  const int count = GetParam() == bus::Carrier::kMemory ? std::min(events(), 30) : events();
  for (int event = 0; event < count; ++event) {
    load(1);
    std::vector<WorkerId> running;
    for (const auto& worker : pool->describe().workers)
      if (worker.state == WorkerStatus::State::kRunning) running.push_back(worker.id);
    const WorkerId victim = running[random() % running.size()];
    if (random() % 3 == 0) {
      // It may have been taken for hung meanwhile, on a machine that is slow.
      (void)pool->stop_worker(victim);
    } else {
      const auto point = static_cast<FaultPoints::Point>(random() % 3);
      faults.arm(random() % 2 ? Faults::Kind::kHang : Faults::Kind::kKill, point, victim);
      load(1);
      log.await_records("out", total());
    }
    load(1);
    log.await_records("out", total());
    if (random() % 4 == 0) faults.release();
  }
  log.await_records("out", total());
  faults.release();
  await([&] { return pool->describe().workers.size() == options.threads; });
  load(2);
  log.await_records("out", total());
  EXPECT_EQ(pool->stop(std::chrono::hours(1)), 0u);
  EXPECT_EQ(log.records_in("out"), total());
  expect_each_once();
  const WorkerStats& stats = pool->stats();
  std::printf("stopped %lu, hung %lu, died %lu, late commits refused %lu, leases taken %lu\n", stats.stopped.load(),
              stats.hung.load(), stats.died.load(), stats.fenced.load(), stats.acquired.load());
}

TEST_P(Drill, ALateCommitOfAHungWorkerIsRefused) {
  log.make_topic("in", 1);
  log.make_topic("out", 1);
  Options options;
  options.threads = 2;
  options.step_deadline = std::chrono::milliseconds(200);
  auto pool =
      WorkerPool::start(log.get(), clock, health, {std::make_shared<tests::Counter>("in", "out")}, options, &faults)
          .value();
  load(1);
  log.await_records("out", 64);
  WorkerId owner = 0;
  for (const auto& worker : pool->describe().workers)
    if (!worker.partitions.empty()) owner = worker.id;
  faults.arm(Faults::Kind::kHang, FaultPoints::Point::kBeforeCommit, owner);
  load(1);
  log.await_records("out", 128);  // By its successor.
  // On a machine that is slow others may have been taken for hung as well, and refused.
  EXPECT_GE(pool->stats().hung, 1u);
  const uint64_t refused = pool->stats().fenced;
  faults.release();
  await([&] { return pool->stats().fenced > refused; });
  load(1);
  log.await_records("out", 192);
  pool.reset();
  expect_each_once();
}

TEST_P(Drill, TooManyHungWorkersMakeTheNodeNotReady) {
  log.make_topic("in", 1);
  log.make_topic("out", 1);
  Options options;
  options.step_deadline = std::chrono::seconds(1);
  options.max_stuck = 0;
  auto pool =
      WorkerPool::start(log.get(), clock, health, {std::make_shared<tests::Counter>("in", "out")}, options, &faults)
          .value();
  EXPECT_TRUE(pool->ready());
  for (const auto& worker : pool->describe().workers)
    if (!worker.partitions.empty()) faults.arm(Faults::Kind::kHang, FaultPoints::Point::kBeforeStep, worker.id);
  load(1);
  log.await_records("out", 64);
  EXPECT_EQ(pool->ready().error().code, "WORKERS_STUCK");
  faults.release();
  await([&] { return pool->ready().has_value(); });
}

INSTANTIATE_TEST_SUITE_P(Carriers, Drill, ::testing::Values(bus::Carrier::kMemory, bus::Carrier::kThread),
                         carrier_name);

}  // namespace
}  // namespace millrace::worker
