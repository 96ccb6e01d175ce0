#include <atomic>
#include <random>
#include <set>

#include "tests/support/random_seed.h"
#include "tests/worker/fixture.h"
#include "tests/worker/scripted.h"
#include "worker/lease.h"
#include "worker/timers.h"

namespace millrace::worker {
namespace {

using std::chrono::milliseconds;
using store::Table;

/// A record's value "id@ms" sets a timer that many milliseconds from the epoch, "-id@ms" cancels it; what fires is said
/// in topic "out".
class Timers : public ::testing::TestWithParam<bus::Carrier> {
 protected:
  ManualClock clock{1'000'000};
  Health health{clock};
  Log log{GetParam(), clock};
  Options options;
  std::atomic<bool> fails{false};
  std::function<void(const StepInput&)> before_firing;
  bus::TopicPartition out;
  std::shared_ptr<Scripted> processor;
  std::unique_ptr<WorkerPool> pool;

  void SetUp() override {
    options.threads = 2;
    options.step_deadline = std::chrono::hours(1);
    log.make_topic("in", 1);
    out = {log.make_topic("out", 1).id, 0};
    processor = std::make_shared<Scripted>([this](const StepInput& input, const bus::Home&) -> StepResult {
      StepDraft draft;
      if (!input.timers.empty() && before_firing) before_firing(input);
      for (const DueTimer& timer : input.timers) {
        if (fails) return tl::unexpected(StepFailure({ErrorKind::kUnavailable, "NOT_NOW", "not now"}));
        draft.appends.push_back(say(out, "", timer.id + "@" + std::to_string(timer.due_ms) + "=" + timer.payload));
      }
      for (const Record& record : input.records) {
        std::string value(*record.record.value);
        const bool cancel = value[0] == '-';
        if (cancel) value.erase(0, 1);
        const size_t at = value.find('@');
        bus::TimerChange change{std::stoll(value.substr(at + 1)), value.substr(0, at), "p"};
        if (cancel) change.payload.reset();
        draft.timers.push_back(change);
        draft.appends.push_back(say(out, "", "ok"));
      }
      return draft;
    });
    start();
  }
  void TearDown() override { pool.reset(); }
  void start() { pool = WorkerPool::start(log.get(), clock, health, {processor}, options).value(); }
  std::vector<std::string> fired() {
    std::vector<std::string> all;
    for (const auto& record : log.read("out"))
      if (record.value != "ok") all.push_back(record.value);
    return all;
  }
  void ask(const std::vector<std::string>& what) {
    std::vector<std::pair<std::string, std::string>> records;
    for (const std::string& one : what) records.emplace_back("k", one);
    const uint64_t there = log.records_in("out");
    log.produce("in", records);
    log.await_records("out", there + what.size());
  }
  void pass(milliseconds time) {
    clock.advance(time);
    pool->nudge();
  }
  size_t rows() { return log->view()->list(Table::kTimers, processor->home(0).prefix(), "", 1'000)->size(); }
};

TEST_P(Timers, TheyFireInDueOrderAndLeaveNothing) {
  ask({"b@1000200", "a@1000100", "c@1000200", "d@5000000"});
  EXPECT_EQ(fired().size(), 0u);
  pass(milliseconds(300));
  log.await_records("out", 4 + 3);
  EXPECT_EQ(fired(), (std::vector<std::string>{"a@1000100=p", "b@1000200=p", "c@1000200=p"}));
  EXPECT_EQ(rows(), 1u);
  await([&] { return pool->stats().timers_fired == 3; });
}

TEST_P(Timers, OneSetInThePastFiresAtOnceThoughLaterOnesFiredBefore) {
  ask({"late@1000100"});
  pass(milliseconds(200));
  log.await_records("out", 2);
  log.produce("in", {{"k", "early@1"}});
  log.await_records("out", 4);
  EXPECT_EQ(fired(), (std::vector<std::string>{"late@1000100=p", "early@1=p"}));
}

TEST_P(Timers, ACancelJustBeforeFiringIsHonoured) {
  ask({"a@1000100", "b@1000100"});
  // Somebody else cancels between the look at the row and the commit.
  std::atomic<bool> cancelled{false};
  before_firing = [&](const StepInput&) {
    if (cancelled.exchange(true)) return;
    bus::Commit cancel(processor->home(0));
    cancel.timers.push_back({1'000'100, "a", std::nullopt});
    log->submit_and_wait(std::move(cancel)).value();
  };
  pass(milliseconds(100));
  log.await_records("out", 3);
  ask({"c@1000050"});
  log.await_records("out", 5);
  EXPECT_EQ(fired(), (std::vector<std::string>{"b@1000100=p", "c@1000050=p"}));
}

TEST_P(Timers, AClockThatStepsBackWhileOneFiresNeitherLosesNorRepeatsIt) {
  ask({"a@1000100", "b@1000200"});
  before_firing = [&](const StepInput&) { clock.step_wall(milliseconds(-500)); };
  pass(milliseconds(150));
  log.await_records("out", 3);
  EXPECT_EQ(fired(), (std::vector<std::string>{"a@1000100=p"}));
  clock.step_wall(milliseconds(1'000));
  pool->nudge();
  log.await_records("out", 4);
  EXPECT_EQ(fired(), (std::vector<std::string>{"a@1000100=p", "b@1000200=p"}));
}

TEST_P(Timers, AcrossARestartEachFiresOnce) {
  ask({"a@1000100", "b@1000200"});
  pass(milliseconds(100));
  log.await_records("out", 3);
  pool.reset();
  clock.advance(milliseconds(500));
  start();
  log.await_records("out", 4);
  pool.reset();
  start();
  ask({"c@1"});
  log.await_records("out", 6);
  EXPECT_EQ(fired(), (std::vector<std::string>{"a@1000100=p", "b@1000200=p", "c@1=p"}));
}

TEST_P(Timers, OneThatFailsIsTriedAgainAndCanBeCancelledMeanwhile) {
  ask({"a@1000100", "b@1000100"});
  fails = true;
  pass(milliseconds(100));
  await([&] { return rows() == 0; });  // Both are parked.
  ask({"-b@1000100"});
  fails = false;
  pass(options.backoff_max);
  log.await_records("out", 4);
  ask({"c@1"});
  log.await_records("out", 6);
  EXPECT_EQ(fired(), (std::vector<std::string>{"a@1000100=p", "c@1=p"}));
  EXPECT_EQ(pool->stats().dead_letters, 0u);
}

TEST_P(Timers, OneThatFailsWithoutRoomToBeParkedWaitsAndIsNotLost) {
  pool.reset();
  options.max_parked = 1;
  start();
  ask({"a@1000100", "b@1000100"});
  fails = true;
  pass(milliseconds(100));
  await([&] {
    for (const auto& worker : pool->describe().workers)
      for (const auto& partition : worker.partitions)
        return partition.state == PartitionStatus::State::kFull && partition.problem.starts_with("PARKED_FULL");
    return false;
  });
  EXPECT_EQ(rows(), 1u);
  fails = false;
  pass(options.backoff_max);
  log.await_records("out", 3);
  await([&] { return rows() == 0; });  // Now that there is room.
  pass(options.backoff_max);
  log.await_records("out", 4);
  EXPECT_EQ(fired(), (std::vector<std::string>{"a@1000100=p", "b@1000100=p"}));
}

TEST_P(Timers, OneThatIsParkedAndSetAnewFiresOnce) {
  ask({"a@1000100"});
  fails = true;
  pass(milliseconds(100));
  await([&] { return rows() == 0; });
  fails = false;
  log.produce("in", {{"k", "a@1000100"}});
  log.await_records("out", 3);
  pass(options.backoff_max);
  ask({"c@1"});
  log.await_records("out", 5);
  EXPECT_EQ(fired(), (std::vector<std::string>{"a@1000100=p", "c@1=p"}));
}

TEST_P(Timers, IdsThatCannotBeKeptFailTheStep) {
  log.produce("in", {{"k", "@1000100"}});
  log.await_records("in.dlq", 1);
  EXPECT_EQ(log.read("in.dlq").front().headers["millrace.error.code"], "INVALID_TIMER");
}

INSTANTIATE_TEST_SUITE_P(Carriers, Timers, ::testing::Values(bus::Carrier::kMemory, bus::Carrier::kThread),
                         carrier_name);

/// Sees from where timers are looked for.
class Spy final : public bus::View {
 public:
  Spy(std::shared_ptr<const bus::View> view) : view_(std::move(view)) {}
  Result<std::optional<bus::Row>> get(Table table, ByteView key) const override { return view_->get(table, key); }
  Result<std::vector<std::pair<Bytes, bus::Row>>> list(Table table, ByteView prefix, ByteView after,
                                                       size_t limit) const override {
    looked_after = Bytes(after);
    return view_->list(table, prefix, after, limit);
  }
  std::optional<bus::PartitionState> partition(const bus::TopicPartition& p) const override {
    return view_->partition(p);
  }
  Result<std::vector<Bytes>> fetch(const bus::TopicPartition& p, uint64_t offset, size_t bytes) const override {
    return view_->fetch(p, offset, bytes);
  }
  Result<uint64_t> offset_for_time(const bus::TopicPartition& p, int64_t time) const override {
    return view_->offset_for_time(p, time);
  }
  mutable Bytes looked_after;

 private:
  std::shared_ptr<const bus::View> view_;
};

/// Random sets, cancels and firings against a sorted set.
TEST(TimerQueue, AgreesWithAModelAndNeverLooksWhereAllWasFired) {
  const uint64_t seed = tests::random_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  ManualClock clock;
  bus::MemoryCommitLog log(clock);
  const bus::Home home = *bus::Home::make(bus::HomeKind::kProcessor, "t/0");
  TimerQueue queue(home);
  std::set<std::pair<int64_t, Bytes>> model;
  Bytes fired_up_to;
  int64_t now = 1'000;
  for (int i = 0; i < 3'000; ++i) {
    now += static_cast<int64_t>(random() % 20) - 4;
    bus::Commit commit(home);
    std::vector<bus::Condition> fired;
    std::vector<bus::TimerChange> changes;
    Spy view(log.view());
    auto due = queue.due(view, now, 1 + random() % 4).value();
    if (!due.empty() && !fired_up_to.empty()) {
      EXPECT_GE(view.looked_after, fired_up_to) << "walks over what was fired";
    }
    auto expected = model.begin();
    for (const auto& timer : due) {
      ASSERT_NE(expected, model.end());
      EXPECT_EQ(std::make_pair(timer.timer.due_ms, timer.timer.id), *expected);
      ++expected;
      commit.conditions.push_back(timer.row);
      commit.timers.push_back({timer.timer.due_ms, timer.timer.id, std::nullopt});
      fired.push_back(timer.row);
      fired_up_to = timer.row.key;
    }
    if (due.empty() && !model.empty()) {
      EXPECT_GT(model.begin()->first, now);
    }
    model.erase(model.begin(), expected);
    for (size_t n = random() % 3; n > 0; --n) {
      bus::TimerChange change{now + static_cast<int64_t>(random() % 60) - 10, std::string(1, char('a' + random() % 4)),
                              "p"};
      if (random() % 4 == 0) change.payload.reset();
      changes.push_back(change);
      commit.timers.push_back(change);
      if (!change.payload) {
        model.erase({change.due_ms, change.id});
        continue;
      }
      model.insert({change.due_ms, change.id});
      fired_up_to = std::min(fired_up_to, bus::timer_key(home, change.due_ms, {}));
    }
    ASSERT_TRUE(log.submit_and_wait(std::move(commit)));
    queue.committed(fired, changes);
  }
}

/// Random takers of one lease against the rule: an epoch has one owner, and only the newest may commit.
TEST(Lease, OfManyTakersOnlyTheLastMayCommit) {
  const uint64_t seed = tests::random_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (bus::Carrier carrier : {bus::Carrier::kMemory, bus::Carrier::kLed}) {
    ManualClock clock;
    Log log(carrier, clock);
    const bus::Home home = *bus::Home::make(bus::HomeKind::kProcessor, "l/0");
    struct Taker {
      Lease seen;
      uint64_t epoch = 0;
    };
    std::vector<Taker> takers(4);
    uint64_t newest = 0;
    for (int i = 0; i < 400; ++i) {
      Taker& taker = takers[random() % takers.size()];
      switch (random() % 4) {
        case 0:
          taker.seen = read_lease(*log->view(), home).value();
          EXPECT_EQ(taker.seen.epoch, newest);
          break;
        case 1: {
          const bool current = taker.seen.version == read_lease(*log->view(), home)->version;
          auto taken = log->submit_and_wait(acquire_lease(home, taker.seen, "me"));
          EXPECT_EQ(taken.has_value(), current);
          if (taken) taker.epoch = newest = taker.seen.epoch + 1;
          break;
        }
        case 2: {
          bus::Commit commit(home);
          commit.fences.push_back(fence_of(home, taker.epoch));
          commit.state.push_back({Table::kNodeState, home.key("x"), "v"});
          auto done = log->submit_and_wait(std::move(commit));
          EXPECT_EQ(done.has_value(), taker.epoch == newest);
          EXPECT_EQ(done ? "" : done.error().code, taker.epoch == newest ? "" : "FENCED");
          break;
        }
        default: {
          auto released = log->submit_and_wait(release_lease(home, taker.epoch));
          EXPECT_EQ(released.has_value(), taker.epoch == newest);
          EXPECT_EQ(read_lease(*log->view(), home)->epoch, newest) << "an epoch never falls";
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace::worker
