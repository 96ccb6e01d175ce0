#include "disruptor/dispatcher.h"

#include "tests/disruptor/dispatcher_fixture.h"

namespace millrace::disruptor::tests {
namespace {

// --- options

struct BadOption {
  const char* name;
  std::function<void(DispatcherOptions&, std::vector<Level<Note>>&)> spoil;
  const char* message;
};

class BadOptions : public testing::TestWithParam<BadOption> {};

TEST_P(BadOptions, AreRefusedWithAMessageThatNamesThem) {
  DispatcherOptions options{.name = "notes"};
  auto levels = noting_levels(2);
  GetParam().spoil(options, levels);
  auto made = NoteDispatcher::create(options, levels);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, "DISPATCHER_OPTIONS");
  EXPECT_EQ(made.error().kind, ErrorKind::kInvalidArgument);
  EXPECT_NE(made.error().message.find(GetParam().message), std::string::npos) << made.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadOptions,
    testing::Values(BadOption{"NoName", [](auto& o, auto&) { o.name = ""; }, "name is empty"},
                    BadOption{"NoSlots", [](auto& o, auto&) { o.slot_count = 0; }, "slot count 0"},
                    BadOption{"OddSlots", [](auto& o, auto&) { o.slot_count = 100; }, "slot count 100"},
                    BadOption{"TooManySlots", [](auto& o, auto&) { o.slot_count = size_t{1} << 30; }, "slot count"},
                    BadOption{"NoMemory", [](auto& o, auto&) { o.max_memory = 0; }, "max memory is 0"},
                    BadOption{"NoBatch", [](auto& o, auto&) { o.max_batch = 0; }, "max batch is 0"},
                    BadOption{"NoClock", [](auto& o, auto&) { o.clock = nullptr; }, "no clock"},
                    BadOption{"TooManyThreads", [](auto& o, auto&) { o.threads = 3; }, "3 threads for 2 levels"},
                    BadOption{"NoLevels", [](auto&, auto& l) { l.clear(); }, "no levels"},
                    BadOption{"UnnamedLevel", [](auto&, auto& l) { l[1].name = ""; }, "has no name"},
                    BadOption{"EmptyHandler", [](auto&, auto& l) { l[1].handler = nullptr; },
                              "'level1' has no handler"},
                    BadOption{"SameName", [](auto&, auto& l) { l[1].name = "level0"; }, "named 'level0'"}),
    [](const auto& tested) { return tested.param.name; });

// --- the life of elements, for several numbers of levels, threads and slots

struct Shape {
  int levels;
  size_t threads;
  size_t slots;
};

class Dispatchers : public testing::TestWithParam<Shape> {
 protected:
  DispatcherOptions options() const {
    return {.name = "notes", .slot_count = GetParam().slots, .abort_when_full = false, .threads = GetParam().threads};
  }
  /// Enters until accepted: with few slots the dispatcher is often full.
  static ElementId enter(NoteDispatcher& dispatcher, int value, Recorder& recorder) {
    for (;;) {
      ElementId id = dispatcher.process_element({.value = value}, [&](Note& note, const Outcome& outcome) {
        if (outcome.accepted()) recorder.add(note, outcome);
      });
      if (id != kNotAccepted) return id;
      std::this_thread::yield();
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Shapes, Dispatchers,
                         testing::Values(Shape{1, 1, 1}, Shape{1, 1, 64}, Shape{3, 1, 1}, Shape{3, 0, 1},
                                         Shape{3, 2, 2}, Shape{6, 1, 64}, Shape{6, 0, 64}, Shape{6, 4, 2},
                                         Shape{8, 3, 16}),
                         [](const auto& tested) {
                           return std::to_string(tested.param.levels) + "levels" +
                                  std::to_string(tested.param.threads) + "threads" +
                                  std::to_string(tested.param.slots) + "slots";
                         });

TEST_P(Dispatchers, StartAndStopEmpty) {
  auto dispatcher = make(options(), noting_levels(GetParam().levels));
  auto stats = dispatcher->stats();
  EXPECT_EQ(stats.accepted, 0u);
  EXPECT_EQ(stats.slots_in_use, 0u);
  EXPECT_EQ(stats.memory_in_use, 0u);
  EXPECT_EQ(stats.levels.size(), static_cast<size_t>(GetParam().levels));
  dispatcher->shutdown(Pending::kDrain);
  dispatcher->shutdown(Pending::kFail);  // does nothing more
}

TEST_P(Dispatchers, ShowEachElementToEachLevelInOrderAndCompleteOnce) {
  constexpr int kElements = 500;  // many times around the smaller rings
  Recorder recorder;
  auto dispatcher = make(options(), noting_levels(GetParam().levels));
  for (int i = 0; i < kElements; ++i) EXPECT_EQ(enter(*dispatcher, i, recorder), static_cast<ElementId>(i + 1));
  dispatcher->shutdown(Pending::kDrain);

  std::vector<int> all_levels;
  for (int i = 0; i < GetParam().levels; ++i) all_levels.push_back(i);
  auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), static_cast<size_t>(kElements));
  for (int i = 0; i < kElements; ++i) {
    const auto& [note, outcome] = entries[static_cast<size_t>(i)];
    EXPECT_EQ(note.value, i);
    EXPECT_EQ(note.path, all_levels);
    EXPECT_EQ(outcome.id, static_cast<ElementId>(i + 1));
    EXPECT_EQ(outcome.fate, Fate::kCompleted);
    EXPECT_EQ(outcome.code, 0u);
    EXPECT_EQ(outcome.level, Outcome::kNoLevel);
  }
  auto stats = dispatcher->stats();
  EXPECT_EQ(stats.completed, static_cast<uint64_t>(kElements));
  EXPECT_EQ(stats.slots_in_use, 0u);
  for (const auto& level : stats.levels) {
    EXPECT_EQ(level.position, static_cast<uint64_t>(kElements));
    EXPECT_EQ(level.lag, 0u);
    EXPECT_GT(level.calls, 0u);
  }
  expect_consistent(stats);
}

TEST_P(Dispatchers, HideSkippedElementsFromLaterLevels) {
  constexpr int kElements = 300;
  const int levels = GetParam().levels;
  // Element v is stopped by level v % (levels + 1), if there is one, with the code 100 + v.
  std::vector<Level<Note>> skipping;
  for (int i = 0; i < levels; ++i)
    skipping.push_back(skipping_level("level" + std::to_string(i), [i, levels](Note& note) {
      note.path.push_back(i);
      return note.value % (levels + 1) == i ? 100 + static_cast<uint32_t>(note.value) : 0;
    }));
  Recorder completed, inspected;
  auto dispatcher = make(options(), std::move(skipping), inspected.callback());
  for (int i = 0; i < kElements; ++i) enter(*dispatcher, i, completed);
  dispatcher->shutdown(Pending::kDrain);

  auto check = [&](const std::vector<Recorder::Entry>& entries) {
    ASSERT_EQ(entries.size(), static_cast<size_t>(kElements));
    for (int i = 0; i < kElements; ++i) {
      const auto& [note, outcome] = entries[static_cast<size_t>(i)];
      const int stopper = i % (levels + 1);
      const bool skipped = stopper < levels;
      EXPECT_EQ(note.value, i);
      EXPECT_EQ(note.path.size(), static_cast<size_t>(skipped ? stopper + 1 : levels));
      EXPECT_EQ(outcome.fate, skipped ? Fate::kSkipped : Fate::kCompleted);
      EXPECT_EQ(outcome.code, skipped ? 100u + static_cast<uint32_t>(i) : 0u);
      EXPECT_EQ(outcome.level, skipped ? stopper : Outcome::kNoLevel);
    }
  };
  check(completed.entries());
  check(inspected.entries());
  auto stats = dispatcher->stats();
  uint64_t by_level = 0;
  for (const auto& level : stats.levels) by_level += level.skipped;
  EXPECT_EQ(by_level, stats.skipped);
  EXPECT_GT(stats.skipped, 0u);
  expect_consistent(stats);
}

TEST_P(Dispatchers, TakeConcurrentProducersWithoutLossOrDisorder) {
  constexpr int kProducers = 4, kEach = 500;
  Recorder recorder;
  auto dispatcher = make(options(), noting_levels(GetParam().levels));
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p)
    producers.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) enter(*dispatcher, p * kEach + i, recorder);
    });
  for (auto& producer : producers) producer.join();
  dispatcher->shutdown(Pending::kDrain);

  auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), static_cast<size_t>(kProducers * kEach));
  std::vector<int> next(kProducers, 0);
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].outcome.id, i + 1);  // completions come in order of entry
    const int value = entries[i].note.value;
    EXPECT_EQ(value % kEach, next[static_cast<size_t>(value / kEach)]++);  // which is each producer's order
  }
  expect_consistent(dispatcher->stats());
}

// --- single cases

TEST(Dispatcher, NothingIsNeededFromACompletion) {
  auto dispatcher = make({.name = "notes"}, noting_levels(2));
  EXPECT_EQ(dispatcher->process_element({}), 1u);
  EXPECT_EQ(dispatcher->process_element({}), 2u);
  dispatcher->shutdown(Pending::kDrain);
  EXPECT_EQ(dispatcher->stats().completed, 2u);
}

TEST(Dispatcher, TheInspectorComesBeforeTheCompletion) {
  std::vector<std::string> calls;  // both come from the last level's thread
  auto dispatcher = make({.name = "notes"}, noting_levels(1),
                         [&](Note& note, const Outcome&) { calls.push_back("inspect " + std::to_string(note.value)); });
  for (int i = 0; i < 2; ++i)
    dispatcher->process_element(
        {.value = i}, [&](Note& note, const Outcome&) { calls.push_back("complete " + std::to_string(note.value)); });
  dispatcher->shutdown(Pending::kDrain);
  EXPECT_EQ(calls, (std::vector<std::string>{"inspect 0", "complete 0", "inspect 1", "complete 1"}));
}

TEST(Dispatcher, BatchesAreBoundedAndHoldWhatWaits) {
  Gate gate;
  std::vector<size_t> sizes;
  std::vector<Level<Note>> levels{gated_level("gate", gate), {"count", [&](Batch<Note>& batch) {
                                                                sizes.push_back(batch.size());
                                                                for (size_t i = 0; i < batch.size(); ++i)
                                                                  if (batch[i].id() == 3) batch[i].skip(7);
                                                              }}};
  Recorder recorder;
  auto dispatcher = make({.name = "notes", .slot_count = 16, .threads = 2, .max_batch = 4}, std::move(levels));
  for (int i = 0; i < 16; ++i) dispatcher->process_element({.value = i}, recorder.callback());
  gate.open();
  dispatcher->shutdown(Pending::kDrain);
  size_t total = 0;
  for (size_t size : sizes) {
    EXPECT_LE(size, 4u);
    total += size;
  }
  EXPECT_EQ(total, 16u);
  auto entries = recorder.entries();
  EXPECT_EQ(entries[2].outcome.fate, Fate::kSkipped);
  EXPECT_EQ(entries[2].outcome.code, 7u);
  EXPECT_EQ(entries[2].outcome.level, 1);
}

TEST(Dispatcher, AMoveOnlyElementAndItsMemoryAreGoneOnceCompleted) {
  struct Owner {
    std::shared_ptr<int> held;
    std::unique_ptr<int> unique;
    size_t memory_size() const noexcept { return 100; }
  };
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> watch = held;
  auto pass = [](Owner&) { return Verdict::Continue(); };
  auto dispatcher = Dispatcher<Owner>::create({.name = "owners", .slot_count = 4}, {per_element<Owner>("pass", pass)});
  ASSERT_TRUE(dispatcher);
  (*dispatcher)->process_element({std::move(held), std::make_unique<int>(2)}, [held = watch.lock()](Owner& o, auto&) {
    EXPECT_EQ(*o.unique, 2);
  });
  (*dispatcher)->shutdown(Pending::kDrain);
  EXPECT_TRUE(watch.expired());  // neither the slot's element nor its completion holds it
  EXPECT_EQ((*dispatcher)->stats().memory_in_use, 0u);
}

TEST(Dispatcher, ACompletionMayEnterANewElement) {
  Recorder recorder;
  std::unique_ptr<NoteDispatcher> dispatcher = make({.name = "notes", .slot_count = 2}, noting_levels(2));
  dispatcher->process_element({.value = 1}, [&](Note& note, const Outcome& outcome) {
    recorder.add(note, outcome);
    dispatcher->process_element({.value = 2}, recorder.callback());
  });
  auto entries = recorder.wait_for(2);
  EXPECT_EQ(entries[1].note.value, 2);
  EXPECT_EQ(entries[1].outcome.id, 2u);
}

TEST(VerdictDeath, ASkipNeedsACode) {
  EXPECT_DEATH(Verdict::Skip(0), "needs a code");
}

}  // namespace
}  // namespace millrace::disruptor::tests
