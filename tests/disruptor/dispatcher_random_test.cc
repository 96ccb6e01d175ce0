#include <map>
#include <random>

#include "disruptor/dispatcher.h"
#include "tests/disruptor/dispatcher_fixture.h"
#include "tests/support/random_seed.h"

// Random shapes, random elements with a destiny of their own, several producers; held against what the destiny says.
namespace millrace::disruptor::tests {
namespace {

/// What shall become of an element, decided by its value alone, so that the model needs no order.
struct Destiny {
  Fate fate;
  int level;
  uint32_t code;
};

Destiny destiny_of(int value, int levels) {
  std::mt19937 random(static_cast<uint32_t>(value));
  const int level = static_cast<int>(random() % static_cast<uint32_t>(levels));
  switch (random() % 4) {
    case 0:
      return {Fate::kSkipped, level, static_cast<uint32_t>(1 + random() % 1000)};
    case 1:
      return {Fate::kFailed, level, 0};
    default:
      return {Fate::kCompleted, Outcome::kNoLevel, 0};
  }
}

std::vector<Level<Note>> fateful_levels(int levels) {
  std::vector<Level<Note>> made;
  for (int i = 0; i < levels; ++i)
    made.push_back(per_element<Note>("level" + std::to_string(i), [i, levels](Note& note) {
      note.path.push_back(i);
      Destiny destiny = destiny_of(note.value, levels);
      if (destiny.level != i) return Verdict::Continue();
      if (destiny.fate == Fate::kFailed) throw std::runtime_error("destiny");
      return Verdict::Skip(destiny.code);
    }));
  return made;
}

void expect_destiny(const Note& note, const Outcome& outcome, int levels) {
  Destiny destiny = destiny_of(note.value, levels);
  const int reached = destiny.level == Outcome::kNoLevel ? levels - 1 : destiny.level;
  std::vector<int> path;
  if (outcome.fate == Fate::kStopped) {
    EXPECT_LE(outcome.level, reached);
    for (int i = 0; i < outcome.level; ++i) path.push_back(i);
  } else {
    EXPECT_EQ(outcome.fate, destiny.fate) << "value " << note.value;
    EXPECT_EQ(outcome.level, destiny.level);
    EXPECT_EQ(outcome.code, destiny.code);
    for (int i = 0; i <= reached; ++i) path.push_back(i);
  }
  EXPECT_EQ(note.path, path);
}

void one_round(std::mt19937_64& random) {
  auto below = [&](uint64_t n) { return random() % n; };
  const int levels = static_cast<int>(1 + below(8));
  DispatcherOptions options{.name = "notes",
                            .slot_count = size_t{1} << below(8),
                            .max_memory = 100 + below(1000),
                            .abort_when_full = below(2) == 0,
                            .element_trace_interval = static_cast<uint32_t>(below(4)),
                            .threads = below(static_cast<uint64_t>(levels) + 1),
                            .max_batch = 1 + below(40)};
  if (below(2) == 0) options.wait = {.spins = 0, .yields = 0};
  options.on_trace = [levels](const ElementTrace& trace) {
    EXPECT_LE(trace.passed_ns.size(), static_cast<size_t>(levels));
  };
  const int producers = static_cast<int>(1 + below(3)), each = static_cast<int>(below(400));
  const Pending pending = below(2) == 0 ? Pending::kDrain : Pending::kFail;
  SCOPED_TRACE(testing::Message() << levels << " levels, " << options.slot_count << " slots, " << options.threads
                                  << " threads, batch " << options.max_batch << ", " << producers << " producers");

  Recorder accepted, refused;
  auto dispatcher = make(options, fateful_levels(levels));
  std::vector<std::thread> threads;
  for (int p = 0; p < producers; ++p)
    threads.emplace_back([&, p, seed = random()] {
      std::mt19937_64 own(seed);
      for (int i = 0; i < each; ++i) {
        Note note{.value = p * each + i, .memory = own() % 60};
        try {
          dispatcher->process_element(note, [&](Note& told, const Outcome& outcome) {
            (outcome.accepted() ? accepted : refused).add(told, outcome);
          });
        } catch (const DispatcherFull&) {
          EXPECT_TRUE(options.abort_when_full);
        }
      }
    });
  for (auto& thread : threads) thread.join();
  dispatcher->shutdown(pending);

  std::map<int, int> times_told;
  ElementId next_id = 1;
  for (const auto& [note, outcome] : accepted.entries()) {
    EXPECT_EQ(outcome.id, next_id++);
    expect_destiny(note, outcome, levels);
    EXPECT_TRUE(pending == Pending::kFail || outcome.fate != Fate::kStopped);
    ++times_told[note.value];
  }
  for (const auto& [note, outcome] : refused.entries()) {
    EXPECT_TRUE(note.path.empty());
    ++times_told[note.value];
  }
  EXPECT_EQ(times_told.size(), static_cast<size_t>(producers * each));
  for (auto [value, times] : times_told) EXPECT_EQ(times, 1) << "value " << value;
  auto stats = dispatcher->stats();
  EXPECT_EQ(stats.accepted, next_id - 1);
  EXPECT_EQ(stats.refused_slots + stats.refused_memory, refused.entries().size());
  EXPECT_EQ(stats.slots_in_use, 0u);
  expect_consistent(stats);
}

TEST(DispatcherRandom, AgreesWithTheModel) {
  std::mt19937_64 random(millrace::tests::random_seed());
  for (int round = 0; round < 60 && !testing::Test::HasFailure(); ++round) one_round(random);
}

}  // namespace
}  // namespace millrace::disruptor::tests
