#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "disruptor/dispatcher.h"

/// What the tests of the dispatcher share: an element that notes which levels it was shown to, and recorders.
namespace millrace::disruptor::tests {

struct Note {
  int value = 0;
  size_t memory = 1;
  /// The levels that were shown it, in order.
  std::vector<int> path = {};

  size_t memory_size() const noexcept { return memory; }
};

using NoteDispatcher = Dispatcher<Note>;

inline std::unique_ptr<NoteDispatcher> make(DispatcherOptions options, std::vector<Level<Note>> levels,
                                            NoteDispatcher::Inspector inspector = {}) {
  auto made = NoteDispatcher::create(std::move(options), std::move(levels), std::move(inspector));
  if (!made) throw std::runtime_error(to_string(made.error()));
  return std::move(*made);
}

/// n levels that note their number and let everything pass.
inline std::vector<Level<Note>> noting_levels(int n) {
  std::vector<Level<Note>> levels;
  for (int i = 0; i < n; ++i)
    levels.push_back(per_element<Note>("level" + std::to_string(i), [i](Note& note) {
      note.path.push_back(i);
      return Verdict::Continue();
    }));
  return levels;
}

/// A level that skips elements for which `code_of` gives a code.
template <typename CodeOf>
Level<Note> skipping_level(std::string name, CodeOf code_of) {
  return per_element<Note>(std::move(name), [code_of](Note& note) {
    uint32_t code = code_of(note);
    return code == 0 ? Verdict::Continue() : Verdict::Skip(code);
  });
}

/// Remembers what completions (or an inspector) were told, in order. Any thread.
class Recorder {
 public:
  struct Entry {
    Note note;
    Outcome outcome;
  };

  std::function<void(Note&, const Outcome&)> callback() {
    return [this](Note& note, const Outcome& outcome) { add(note, outcome); };
  }
  void add(const Note& note, const Outcome& outcome) {
    MutexLock lock(mutex_);
    entries_.push_back({note, outcome});
    changed_.notify_all();
  }
  /// Waits until there are `n` entries, and returns all.
  std::vector<Entry> wait_for(size_t n) {
    MutexLock lock(mutex_);
    while (entries_.size() < n) changed_.wait(mutex_);
    return entries_;
  }
  std::vector<Entry> entries() {
    MutexLock lock(mutex_);
    return entries_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Entry> entries_;
};

/// Holds consumers up until opened; tells when one has arrived.
class Gate {
 public:
  void pass() {
    MutexLock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    while (!open_) changed_.wait(mutex_);
  }
  void open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_arrived(int n = 1) {
    MutexLock lock(mutex_);
    while (arrived_ < n) changed_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ = false;
  int arrived_ = 0;
};

/// A level at which everything stands until the gate opens.
inline Level<Note> gated_level(std::string name, Gate& gate) {
  return per_element<Note>(std::move(name), [&gate](Note&) {
    gate.pass();
    return Verdict::Continue();
  });
}

/// Whether every element is accounted for: what `stats` says adds up.
inline void expect_consistent(const DispatcherStats& stats) {
  EXPECT_EQ(stats.accepted, stats.completed + stats.skipped + stats.failed + stats.stopped + stats.slots_in_use);
  if (stats.slots_in_use == 0) {
    EXPECT_EQ(stats.memory_in_use, 0u);
  }
}

}  // namespace millrace::disruptor::tests
