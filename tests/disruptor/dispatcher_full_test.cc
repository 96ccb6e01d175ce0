#include <algorithm>

#include "disruptor/dispatcher.h"
#include "tests/disruptor/dispatcher_fixture.h"

// Full by slots and by memory, in both modes, and how it goes on afterwards.
namespace millrace::disruptor::tests {
namespace {

struct Filling {
  const char* name;
  size_t slots;
  size_t max_memory;
  /// What each element says it holds, and how many then fit.
  size_t memory;
  int fits;
  Fate fate;
};

class FullDispatchers : public testing::TestWithParam<Filling> {
 protected:
  DispatcherOptions options(bool abort) const {
    return {.name = "notes",
            .slot_count = GetParam().slots,
            .max_memory = GetParam().max_memory,
            .abort_when_full = abort,
            .threads = 1};
  }
  void fill(NoteDispatcher& dispatcher) {
    for (int i = 0; i < GetParam().fits; ++i)
      ASSERT_NE(dispatcher.process_element({.value = i, .memory = GetParam().memory}, accepted_.callback()), 0u);
  }
  void expect_refusal() {
    auto entries = refused_.entries();
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].note.value, 99);
    EXPECT_EQ(entries[0].outcome.id, kNotAccepted);
    EXPECT_FALSE(entries[0].outcome.accepted());
    EXPECT_EQ(entries[0].outcome.fate, GetParam().fate);
    EXPECT_EQ(error_code(entries[0].outcome.fate), "DISPATCHER_FULL");
    EXPECT_EQ(entries[0].outcome.level, Outcome::kNoLevel);
  }
  /// Opens the gate; what was refused is then accepted, and every completion has come once.
  void expect_resumes(NoteDispatcher& dispatcher) {
    gate_.open();
    accepted_.wait_for(static_cast<size_t>(GetParam().fits));
    // The completion comes before the slot is free.
    ElementId id = kNotAccepted;
    while (id == kNotAccepted) {
      try {
        id = dispatcher.process_element({.value = 99, .memory = GetParam().memory},
                                        [&](Note& note, const Outcome& outcome) {
                                          if (outcome.accepted()) accepted_.add(note, outcome);
                                        });
      } catch (const DispatcherFull&) {
      }
    }
    EXPECT_EQ(id, static_cast<ElementId>(GetParam().fits + 1));  // a refused element takes no id
    dispatcher.shutdown(Pending::kDrain);
    EXPECT_EQ(accepted_.entries().size(), static_cast<size_t>(GetParam().fits + 1));
    auto stats = dispatcher.stats();
    EXPECT_GT(stats.refused_slots + stats.refused_memory, 0u);
    expect_consistent(stats);
  }
  Gate gate_;
  Recorder accepted_, refused_;
};

INSTANTIATE_TEST_SUITE_P(Fillings, FullDispatchers,
                         testing::Values(Filling{"OneSlot", 1, 1'000, 1, 1, Fate::kFullSlots},
                                         Filling{"TwoSlots", 2, 1'000, 1, 2, Fate::kFullSlots},
                                         Filling{"Slots", 8, 1'000, 1, 8, Fate::kFullSlots},
                                         Filling{"Memory", 8, 1'000, 300, 3, Fate::kFullMemory},
                                         Filling{"MemoryToTheByte", 8, 1'000, 250, 4, Fate::kFullMemory},
                                         Filling{"MemoryOfOne", 8, 1'000, 1'000, 1, Fate::kFullMemory}),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(FullDispatchers, ThrowWhenToldToAbort) {
  auto dispatcher = make(options(true), {gated_level("gate", gate_)});
  fill(*dispatcher);
  gate_.wait_arrived();
  try {
    dispatcher->process_element({.value = 99, .memory = GetParam().memory}, refused_.callback());
    FAIL() << "accepted";
  } catch (const DispatcherFull& full) {
    EXPECT_NE(std::string(full.what()).find("dispatcher 'notes' is full"), std::string::npos) << full.what();
    EXPECT_EQ(DispatcherFull::kCode, "DISPATCHER_FULL_ABORTED");
  }
  expect_refusal();
  expect_resumes(*dispatcher);
}

TEST_P(FullDispatchers, ReturnIdZeroOtherwise) {
  auto dispatcher = make(options(false), {gated_level("gate", gate_)});
  fill(*dispatcher);
  gate_.wait_arrived();
  EXPECT_EQ(dispatcher->process_element({.value = 99, .memory = GetParam().memory}, refused_.callback()), kNotAccepted);
  expect_refusal();
  expect_resumes(*dispatcher);
}

TEST_P(FullDispatchers, ShowTheirFillingInTheStats) {
  auto dispatcher = make(options(false), {gated_level("gate", gate_)});
  fill(*dispatcher);
  gate_.wait_arrived();
  dispatcher->process_element({.value = 99, .memory = GetParam().memory}, refused_.callback());
  auto stats = dispatcher->stats();
  const auto fits = static_cast<uint64_t>(GetParam().fits);
  EXPECT_EQ(stats.slots_in_use, fits);
  EXPECT_EQ(stats.slot_count, GetParam().slots);
  EXPECT_EQ(stats.memory_in_use, fits * GetParam().memory);
  EXPECT_EQ(stats.max_memory, GetParam().max_memory);
  EXPECT_EQ(stats.levels[0].position, 0u);
  EXPECT_EQ(stats.levels[0].lag, fits);
  EXPECT_EQ(stats.refused_slots, GetParam().fate == Fate::kFullSlots ? 1u : 0u);
  EXPECT_EQ(stats.refused_memory, GetParam().fate == Fate::kFullMemory ? 1u : 0u);
  gate_.open();
}

TEST(FullDispatcher, AnElementLargerThanTheBoundNeverFits) {
  Recorder recorder;
  auto dispatcher = make({.name = "notes", .max_memory = 100, .abort_when_full = false}, noting_levels(1));
  EXPECT_EQ(dispatcher->process_element({.memory = 101}, recorder.callback()), kNotAccepted);
  EXPECT_EQ(dispatcher->process_element({.memory = ~size_t{0}}, recorder.callback()), kNotAccepted);
  EXPECT_NE(dispatcher->process_element({.memory = 100}, recorder.callback()), kNotAccepted);
  dispatcher->shutdown(Pending::kDrain);
  auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].outcome.fate, Fate::kFullMemory);
  EXPECT_EQ(entries[1].outcome.fate, Fate::kFullMemory);
  EXPECT_EQ(entries[2].outcome.fate, Fate::kCompleted);
}

TEST(FullDispatcher, ASkippedElementKeepsItsSlotUntilTheLastBarrier) {
  Gate gate;
  Recorder recorder;
  auto dispatcher =
      make({.name = "notes", .slot_count = 2, .abort_when_full = false, .threads = 2},
           {skipping_level("skip", [](Note& note) { return note.value == 1 ? 5u : 0u; }), gated_level("gate", gate)});
  dispatcher->process_element({.value = 0}, recorder.callback());
  dispatcher->process_element({.value = 1}, recorder.callback());
  gate.wait_arrived();
  EXPECT_EQ(dispatcher->process_element({.value = 2}), kNotAccepted);
  gate.open();
  dispatcher->shutdown(Pending::kDrain);
  EXPECT_EQ(recorder.entries()[1].outcome.fate, Fate::kSkipped);
}

// Eight producers against one slow consumer: nothing is lost, both bounds hold, each completion comes once.
TEST(FullDispatcher, EightProducersAndASlowConsumer) {
  constexpr int kProducers = 8, kEach = 2'000;
  constexpr size_t kMemory = 10, kMaxMemory = 60;
  std::atomic<uint64_t> accepted{0}, refused{0}, completed{0}, completed_refused{0};
  std::atomic<size_t> in_flight{0}, most_in_flight{0};
  auto dispatcher =
      make({.name = "notes", .slot_count = 8, .max_memory = kMaxMemory, .abort_when_full = false, .threads = 0},
           {{"slow",
             [&](Batch<Note>& batch) {
               // Only this level raises it.
               most_in_flight = std::max(most_in_flight.load(), in_flight.fetch_add(batch.size()) + batch.size());
               std::this_thread::yield();
             }},
            {"leave", [&](Batch<Note>& batch) { in_flight.fetch_sub(batch.size()); }}});
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p)
    producers.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        ElementId id = dispatcher->process_element({.memory = kMemory}, [&](Note&, const Outcome& outcome) {
          (outcome.accepted() ? completed : completed_refused).fetch_add(1);
        });
        (id != kNotAccepted ? accepted : refused).fetch_add(1);
      }
    });
  for (auto& producer : producers) producer.join();
  dispatcher->shutdown(Pending::kDrain);
  EXPECT_EQ(accepted + refused, static_cast<uint64_t>(kProducers * kEach));
  EXPECT_EQ(completed, accepted);
  EXPECT_EQ(completed_refused, refused);
  EXPECT_LE(most_in_flight, kMaxMemory / kMemory);
  auto stats = dispatcher->stats();
  EXPECT_EQ(stats.accepted, accepted);
  EXPECT_EQ(stats.refused_memory + stats.refused_slots, refused);
  expect_consistent(stats);
}

}  // namespace
}  // namespace millrace::disruptor::tests
