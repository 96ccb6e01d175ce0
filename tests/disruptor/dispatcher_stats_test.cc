#include "disruptor/dispatcher.h"
#include "tests/disruptor/dispatcher_fixture.h"

// Traces, figures and the proof of progress.
namespace millrace::disruptor::tests {
namespace {

struct CopiedTrace {
  Outcome outcome;
  int64_t entered_ns;
  std::vector<std::string> names;
  std::vector<int64_t> passed_ns;
  std::string text;
};

class Traces : public testing::Test {
 protected:
  DispatcherOptions options(uint32_t interval) {
    DispatcherOptions options{.name = "notes",
                              .slot_count = 8,
                              .abort_when_full = false,
                              .element_trace_interval = interval,
                              .clock = &clock_};
    options.on_trace = [this](const ElementTrace& trace) {
      traces_.push_back({trace.outcome,
                         trace.entered_ns,
                         {trace.level_names.begin(), trace.level_names.end()},
                         {trace.passed_ns.begin(), trace.passed_ns.end()},
                         to_string(trace)});
    };
    return options;
  }
  /// A level that takes so many milliseconds of the test's clock for each batch.
  Level<Note> taking(std::string name, int ms) {
    return {std::move(name), [this, ms](Batch<Note>&) { clock_.advance(std::chrono::milliseconds(ms)); }};
  }
  ManualClock clock_;
  std::vector<CopiedTrace> traces_;
};

TEST_F(Traces, SayWhenAnElementPassedEachLevel) {
  auto dispatcher = make(options(1), {taking("three", 3), taking("five", 5)});
  clock_.advance(std::chrono::milliseconds(100));
  dispatcher->process_element({});
  dispatcher->shutdown(Pending::kDrain);
  ASSERT_EQ(traces_.size(), 1u);
  EXPECT_EQ(traces_[0].outcome.id, 1u);
  EXPECT_EQ(traces_[0].entered_ns, 100'000'000);
  EXPECT_EQ(traces_[0].names, (std::vector<std::string>{"three", "five"}));
  EXPECT_EQ(traces_[0].passed_ns, (std::vector<int64_t>{103'000'000, 108'000'000}));
  EXPECT_EQ(traces_[0].text, "notes element 1 completed: three +3000.0 us, five +8000.0 us");
}

TEST_F(Traces, AreTakenOfEveryNthElement) {
  for (uint32_t interval : {1u, 3u, 8u, 100u}) {
    traces_.clear();
    auto dispatcher = make(options(interval), noting_levels(2));
    for (int accepted = 0; accepted < 250;) accepted += dispatcher->process_element({}) != kNotAccepted;
    dispatcher->shutdown(Pending::kDrain);
    ASSERT_EQ(traces_.size(), 250 / interval) << "interval " << interval;
    for (size_t i = 0; i < traces_.size(); ++i) EXPECT_EQ(traces_[i].outcome.id, (i + 1) * interval);
  }
}

TEST_F(Traces, AreNotTakenWithIntervalZero) {
  auto dispatcher = make(options(0), noting_levels(2));
  dispatcher->process_element({});
  dispatcher->shutdown(Pending::kDrain);
  EXPECT_TRUE(traces_.empty());
}

TEST_F(Traces, OfASkippedElementNameTheLevelAndItsCode) {
  auto dispatcher = make(options(1), {skipping_level("judge", [](Note&) { return 0x2Au; }), taking("later", 5)});
  dispatcher->process_element({});
  dispatcher->shutdown(Pending::kDrain);
  ASSERT_EQ(traces_.size(), 1u);
  EXPECT_EQ(traces_[0].text, "notes element 1 skipped at judge with code 0x2a: judge +0.0 us, later +0.0 us");
}

TEST_F(Traces, OfAStoppedElementEndWhereItStood) {
  Gate gate;
  auto with_threads = options(1);
  with_threads.threads = 2;
  auto dispatcher = make(with_threads, {gated_level("gate", gate), taking("later", 5)});
  dispatcher->process_element({.value = 1});
  gate.wait_arrived();
  dispatcher->process_element({.value = 2});
  std::thread opener([&] {
    while (dispatcher->stats().refused_closed == 0) {
      dispatcher->process_element({.memory = ~size_t{0}});
      std::this_thread::yield();
    }
    gate.open();
  });
  dispatcher->shutdown(Pending::kFail);
  opener.join();
  ASSERT_EQ(traces_.size(), 2u);
  for (const auto& trace : traces_)
    if (trace.outcome.fate == Fate::kStopped) {
      EXPECT_EQ(trace.passed_ns.size(), static_cast<size_t>(trace.outcome.level)) << trace.text;
    }
}

TEST(Stats, ShowWhereEachLevelStands) {
  Gate first, second;
  auto dispatcher = make({.name = "notes", .slot_count = 8, .threads = 0, .max_batch = 1},
                         {noting_levels(1)[0], gated_level("first", first), gated_level("second", second)});
  for (int i = 0; i < 5; ++i) dispatcher->process_element({.memory = 100});
  first.wait_arrived();
  while (dispatcher->stats().levels[0].position < 5) std::this_thread::yield();
  auto stats = dispatcher->stats();
  EXPECT_EQ(stats.name, "notes");
  EXPECT_EQ(stats.threads, 3u);
  EXPECT_EQ(stats.accepted, 5u);
  EXPECT_EQ(stats.slots_in_use, 5u);
  EXPECT_EQ(stats.memory_in_use, 500u);
  EXPECT_EQ(stats.levels[0].name, "level0");
  EXPECT_EQ(stats.levels[0].lag, 0u);
  EXPECT_EQ(stats.levels[1].position, 0u);
  EXPECT_EQ(stats.levels[1].lag, 5u);
  EXPECT_EQ(stats.levels[2].lag, 0u);
  first.open();
  second.wait_arrived();
  while (dispatcher->stats().levels[1].position < 5) std::this_thread::yield();
  stats = dispatcher->stats();
  EXPECT_EQ(stats.levels[1].lag, 0u);
  EXPECT_EQ(stats.levels[2].lag, 5u);
  second.open();
  dispatcher->shutdown(Pending::kDrain);
  expect_consistent(dispatcher->stats());
}

TEST(Stats, MeasureTheTimeInHandlers) {
  ManualClock clock;
  auto dispatcher = make({.name = "notes", .clock = &clock},
                         {{"slow", [&](Batch<Note>&) { clock.advance(std::chrono::milliseconds(4)); }}});
  Recorder recorder;
  for (size_t i = 1; i <= 3; ++i) {
    dispatcher->process_element({}, recorder.callback());
    recorder.wait_for(i);  // one call each
  }
  dispatcher->shutdown(Pending::kDrain);
  auto level = dispatcher->stats().levels[0];
  EXPECT_EQ(level.calls, 3u);
  EXPECT_EQ(level.service_ns_total, 12'000'000u);
  EXPECT_GE(level.service_ns_p50, 4'000'000u);
  EXPECT_LE(level.service_ns_p99, 5'000'000u);
  EXPECT_EQ(dispatcher->service_time(0).count(), 3u);
}

TEST(Progress, IdleThreadsAnswerNudgesAndAStuckOneDoesNot) {
  ManualClock clock;
  Health health(clock);
  Gate gate;
  auto dispatcher =
      make({.name = "notes", .threads = 2, .health = &health}, {noting_levels(1)[0], gated_level("gate", gate)});
  // Every round nudges both loops anew; both answer although nothing is there to do.
  std::vector<uint64_t> before(2, 0);
  for (int round = 0; round < 50; ++round) {
    auto states = health.check();
    ASSERT_EQ(states.size(), 2u);
    EXPECT_EQ(states[0].name, "notes-0");
    EXPECT_EQ(states[1].name, "notes-1");
    for (size_t i = 0; i < 2; ++i)
      while (health.check()[i].beats <= before[i]) std::this_thread::yield();
    for (size_t i = 0; i < 2; ++i) before[i] = health.check()[i].beats;
  }
  dispatcher->process_element({});
  gate.wait_arrived();
  health.check();  // answers an older nudge at most
  health.check();
  clock.advance(std::chrono::seconds(5));
  while (health.check()[0].unanswered_ns != 0) std::this_thread::yield();
  EXPECT_GE(health.check()[1].unanswered_ns, 5'000'000'000);
  gate.open();
  while (health.check()[1].unanswered_ns != 0) std::this_thread::yield();
  dispatcher->shutdown(Pending::kDrain);
  EXPECT_TRUE(health.check().empty());
}

}  // namespace
}  // namespace millrace::disruptor::tests
