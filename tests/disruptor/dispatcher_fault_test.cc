#include <stdexcept>

#include "disruptor/dispatcher.h"
#include "tests/disruptor/dispatcher_fixture.h"

// Consumers and callbacks that throw, and stops with elements under way: neither may lose a completion.
namespace millrace::disruptor::tests {
namespace {

class Throwing : public testing::TestWithParam<size_t> {};  // threads
INSTANTIATE_TEST_SUITE_P(Threads, Throwing, testing::Values(1, 0));

TEST_P(Throwing, AConsumerFailsItsElementAndNoOther) {
  constexpr int kElements = 100;
  auto levels = noting_levels(1);
  levels.push_back(per_element<Note>("throw", [](Note& note) -> Verdict {
    note.path.push_back(1);
    if (note.value % 10 == 3) throw std::runtime_error("value " + std::to_string(note.value));
    if (note.value % 10 == 4) throw 4;  // not a std::exception
    if (note.value % 10 == 5) return Verdict::Skip(55);
    return Verdict::Continue();
  }));
  levels.push_back(per_element<Note>("after", [](Note& note) {
    note.path.push_back(2);
    return Verdict::Continue();
  }));
  Recorder recorder, inspected;
  auto dispatcher = make({.name = "notes", .threads = GetParam(), .max_batch = 16}, levels, inspected.callback());
  for (int i = 0; i < kElements; ++i) dispatcher->process_element({.value = i}, recorder.callback());
  dispatcher->shutdown(Pending::kDrain);

  auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), static_cast<size_t>(kElements));
  EXPECT_EQ(inspected.entries().size(), static_cast<size_t>(kElements));
  for (const auto& [note, outcome] : entries) {
    const int digit = note.value % 10;
    const Fate fate = digit == 3 || digit == 4 ? Fate::kFailed : digit == 5 ? Fate::kSkipped : Fate::kCompleted;
    EXPECT_EQ(outcome.fate, fate);
    EXPECT_EQ(outcome.level, fate == Fate::kCompleted ? Outcome::kNoLevel : 1);
    EXPECT_EQ(outcome.code, fate == Fate::kSkipped ? 55u : 0u);
    // Each level saw it once, neighbours of those that threw included.
    EXPECT_EQ(note.path, fate == Fate::kCompleted ? (std::vector<int>{0, 1, 2}) : (std::vector<int>{0, 1}));
  }
  auto stats = dispatcher->stats();
  EXPECT_EQ(stats.failed, 20u);
  EXPECT_EQ(stats.consumer_exceptions, 20u);
  EXPECT_EQ(stats.levels[1].failed, 20u);
  EXPECT_EQ(stats.levels[1].skipped, 10u);
  EXPECT_EQ(error_code(Fate::kFailed), "CONSUMER_FAILED");
  expect_consistent(stats);
}

TEST_P(Throwing, ABatchConsumerThatThrowsOutsideItsLoopFailsTheBatch) {
  Gate gate;
  std::vector<Level<Note>> levels{gated_level("gate", gate), {"commit", [](Batch<Note>& batch) {
                                                                for (auto item : batch)
                                                                  if (item->value == 2) item.skip(9);
                                                                throw std::runtime_error("no commit");
                                                              }}};
  Recorder recorder;
  auto dispatcher = make({.name = "notes", .slot_count = 8, .threads = GetParam()}, std::move(levels));
  for (int i = 0; i < 8; ++i) dispatcher->process_element({.value = i}, recorder.callback());
  gate.open();
  dispatcher->shutdown(Pending::kDrain);
  auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), 8u);
  for (const auto& [note, outcome] : entries) {
    EXPECT_EQ(outcome.fate, note.value == 2 ? Fate::kSkipped : Fate::kFailed);
    EXPECT_EQ(outcome.level, 1);
  }
  EXPECT_EQ(dispatcher->stats().failed, 7u);
}

// Verdicts given beyond the element at which a loop throws are void: those elements are shown again.
TEST(Throwing, WhatComesBehindAThrowIsShownAgain) {
  Gate gate;
  std::atomic<int> calls{0};
  std::vector<Level<Note>> levels{gated_level("gate", gate), {"judge", [&](Batch<Note>& batch) {
                                                                ++calls;
                                                                const size_t last = batch.size() - 1;
                                                                if (calls == 1) batch[last].skip(1);
                                                                for (auto item : batch)
                                                                  if (item->value == 1) throw std::bad_alloc();
                                                              }}};
  Recorder recorder;
  auto dispatcher = make({.name = "notes", .slot_count = 4, .threads = 1}, std::move(levels));
  gate.open();
  // One turn must see all three: they enter while the thread is held up in a completion.
  Gate hold;
  dispatcher->process_element({.value = 0}, [&](Note& note, const Outcome& outcome) {
    hold.pass();
    recorder.add(note, outcome);
  });
  hold.wait_arrived();
  calls = 0;
  for (int i = 0; i < 3; ++i) dispatcher->process_element({.value = i}, recorder.callback());
  hold.open();
  dispatcher->shutdown(Pending::kDrain);
  auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(entries[1].outcome.fate, Fate::kCompleted);
  EXPECT_EQ(entries[2].outcome.fate, Fate::kFailed);
  EXPECT_EQ(entries[3].outcome.fate, Fate::kCompleted);
}

TEST_P(Throwing, CallbacksAreCountedAndNothingElse) {
  Recorder recorder;
  DispatcherOptions options{
      .name = "notes", .slot_count = 4, .abort_when_full = false, .element_trace_interval = 1, .threads = GetParam()};
  options.on_trace = [](const ElementTrace&) { throw std::runtime_error("trace"); };
  auto dispatcher =
      make(options, noting_levels(2), [](Note&, const Outcome&) { throw std::runtime_error("inspector"); });
  constexpr int kElements = 50;
  for (int i = 0; i < kElements;) {
    auto id = dispatcher->process_element({.value = i}, [&, i](Note& note, const Outcome& outcome) {
      if (!outcome.accepted()) return;
      recorder.add(note, outcome);
      if (i % 2 == 0) throw std::runtime_error("completion");
      throw "not a std::exception";
    });
    if (id != kNotAccepted) ++i;
  }
  dispatcher->shutdown(Pending::kDrain);
  EXPECT_EQ(recorder.entries().size(), static_cast<size_t>(kElements));
  auto stats = dispatcher->stats();
  EXPECT_EQ(stats.callback_exceptions, 3u * kElements);  // inspector, completion and trace receiver of each
  EXPECT_EQ(stats.completed, static_cast<uint64_t>(kElements));
  expect_consistent(stats);
}

TEST(Throwing, ACompletionOfARefusedElementMayThrowToo) {
  Gate gate;
  auto dispatcher = make({.name = "notes", .slot_count = 1}, {gated_level("gate", gate)});
  dispatcher->process_element({});
  EXPECT_THROW(dispatcher->process_element({}, [](Note&, const Outcome&) { throw 1; }), DispatcherFull);
  gate.open();
  EXPECT_EQ(dispatcher->stats().callback_exceptions, 1u);
}

// --- stops

TEST(Stopping, DrainsWhatIsPending) {
  Gate gate;
  Recorder recorder;
  auto dispatcher =
      make({.name = "notes", .slot_count = 16, .threads = 2}, {gated_level("gate", gate), noting_levels(1)[0]});
  for (int i = 0; i < 16; ++i) dispatcher->process_element({.value = i}, recorder.callback());
  gate.wait_arrived();
  std::thread opener([&] { gate.open(); });
  dispatcher->shutdown(Pending::kDrain);
  opener.join();
  auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), 16u);
  for (const auto& entry : entries) EXPECT_EQ(entry.outcome.fate, Fate::kCompleted);
}

TEST(Stopping, CompletesWhatIsPendingWithItsLevel) {
  Gate gate;
  Recorder recorder, inspected;
  std::atomic<bool> closed{false};
  // Level 0 passes its batches of one; level 1 stands at its first element.
  std::vector<Level<Note>> levels{skipping_level("skip", [](Note& note) { return note.value == 2 ? 22u : 0u; }),
                                  gated_level("gate", gate), per_element<Note>("never", [](Note& note) {
                                    note.path.push_back(2);
                                    return Verdict::Continue();
                                  })};
  auto dispatcher = make({.name = "notes", .slot_count = 8, .abort_when_full = false, .threads = 0, .max_batch = 1},
                         std::move(levels), inspected.callback());
  for (int i = 0; i < 5; ++i) dispatcher->process_element({.value = i}, recorder.callback());
  gate.wait_arrived();
  while (dispatcher->stats().levels[0].position < 5) std::this_thread::yield();
  // The gate opens only when the dispatcher has closed its entry, so that level 1 has a turn at hand at the stop.
  std::thread opener([&] {
    while (!closed)
      dispatcher->process_element({.memory = ~size_t{0}},
                                  [&](Note&, const Outcome& outcome) { closed = outcome.fate == Fate::kClosed; });
    gate.open();
  });
  dispatcher->shutdown(Pending::kFail);
  opener.join();

  auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(inspected.entries().size(), 5u);
  uint64_t stopped = 0;
  for (int i = 0; i < 5; ++i) {
    const auto& [note, outcome] = entries[static_cast<size_t>(i)];
    EXPECT_EQ(note.value, i);
    EXPECT_EQ(outcome.id, static_cast<ElementId>(i + 1));
    if (i == 2) {
      EXPECT_EQ(outcome.fate, Fate::kSkipped);  // the verdict it already had
      EXPECT_EQ(outcome.code, 22u);
      EXPECT_EQ(outcome.level, 0);
    } else if (outcome.fate == Fate::kStopped) {
      ++stopped;
      // All had passed level 0, the first one perhaps level 1 as well; none was shown to level 2.
      EXPECT_GE(outcome.level, 1);
      EXPECT_LE(outcome.level, 2);
      EXPECT_TRUE(note.path.empty());
      EXPECT_EQ(error_code(outcome.fate), "DISPATCHER_STOPPED");
    } else {
      EXPECT_EQ(outcome.fate, Fate::kCompleted);
    }
  }
  auto stats = dispatcher->stats();
  EXPECT_EQ(stats.stopped, stopped);
  expect_consistent(stats);
}

TEST(Stopping, TheDestructorCompletesWhatIsPending) {
  Recorder recorder;
  Gate gate;
  {
    auto dispatcher = make({.name = "notes", .slot_count = 8}, {gated_level("gate", gate)});
    for (int i = 0; i < 8; ++i) dispatcher->process_element({.value = i}, recorder.callback());
    gate.open();
  }
  EXPECT_EQ(recorder.entries().size(), 8u);
}

TEST(Stopping, RefusesNewElementsAfterwardsInBothModes) {
  for (bool abort : {true, false}) {
    Recorder recorder;
    auto dispatcher = make({.name = "notes", .abort_when_full = abort}, noting_levels(1));
    dispatcher->shutdown(Pending::kDrain);
    EXPECT_EQ(dispatcher->process_element({.value = 1}, recorder.callback()), kNotAccepted);
    auto entries = recorder.entries();
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].outcome.fate, Fate::kClosed);
    EXPECT_EQ(error_code(Fate::kClosed), "DISPATCHER_STOPPED");
    EXPECT_EQ(dispatcher->stats().refused_closed, 1u);
  }
}

// Producers go on entering while the dispatcher stops: each of their completions comes exactly once.
void stop_under_load(Pending pending, size_t threads) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<uint64_t> entered{0}, accepted{0}, told{0}, told_accepted{0};
    std::atomic<bool> closed{false};
    auto dispatcher =
        make({.name = "notes", .slot_count = 16, .abort_when_full = false, .threads = threads}, noting_levels(3));
    std::vector<std::thread> producers;
    for (int p = 0; p < 3; ++p)
      producers.emplace_back([&] {
        while (!closed) {
          ++entered;
          auto id = dispatcher->process_element({}, [&](Note&, const Outcome& outcome) {
            ++told;
            if (outcome.accepted()) ++told_accepted;
            if (outcome.fate == Fate::kClosed) closed = true;
          });
          if (id != kNotAccepted) ++accepted;
        }
      });
    while (accepted < 100) std::this_thread::yield();
    dispatcher->shutdown(pending);
    for (auto& producer : producers) producer.join();
    EXPECT_EQ(told, entered);
    EXPECT_EQ(told_accepted, accepted);
    auto stats = dispatcher->stats();
    EXPECT_EQ(stats.accepted, accepted);
    EXPECT_EQ(stats.slots_in_use, 0u);
    expect_consistent(stats);
  }
}

TEST(Stopping, UnderLoadDraining) {
  stop_under_load(Pending::kDrain, 1);
}
TEST(Stopping, UnderLoadFailing) {
  stop_under_load(Pending::kFail, 1);
}
TEST(Stopping, UnderLoadFailingWithAThreadEach) {
  stop_under_load(Pending::kFail, 0);
}

}  // namespace
}  // namespace millrace::disruptor::tests
