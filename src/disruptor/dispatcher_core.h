#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/histogram.h"
#include "base/result.h"
#include "disruptor/batch.h"
#include "disruptor/dispatcher_options.h"
#include "disruptor/ring.h"

namespace millrace::disruptor {

/// What to do at a stop with elements that are still on their way.
enum class Pending {
  kDrain,  ///< let them pass the remaining levels; takes as long as the consumers need
  kFail,   ///< complete them as kStopped once the batches at hand are done
};

/// The dispatcher without the element's type: ring, barriers, levels, threads, counters. Owned by a Dispatcher, whose
/// slots it walks through as an array of SlotHead with a stride.
class DispatcherCore {
 public:
  /// Where the slots are, and what to do with one at its end (tell the inspector and the completion, drop the
  /// element; must not throw).
  struct Slots {
    SlotHead* first;
    size_t stride;
    std::function<void(SlotHead&, const Outcome&)> finish;
  };
  struct LevelSpec {
    std::string name;
    std::function<void(BatchCore&)> handler;
  };

  static Status check(const DispatcherOptions& options, const std::vector<LevelSpec>& levels);
  /// The options have been checked. Nothing runs before start().
  DispatcherCore(DispatcherOptions options, std::vector<LevelSpec> levels, Slots slots);
  ~DispatcherCore();

  void start();
  /// By the owner, not from a consumer or callback. Later calls do nothing.
  void shutdown(Pending pending);

  /// Reserves memory and a slot: the slot to fill and hand to publish(), or null and why. Never blocks; any thread.
  SlotHead* enter(size_t memory, Fate& refusal);
  void publish(SlotHead& slot);
  /// Counts the refusal; throws DispatcherFull when the options want it.
  void refused(Fate fate, size_t memory);

  DispatcherStats stats() const;
  const Histogram& service_time(size_t level) const { return levels_[level]->service_ns; }
  const DispatcherOptions& options() const { return options_; }

  /// Calls `callback` and counts and logs what it throws.
  template <typename Callback>
  void guarded(std::string_view what, Callback&& callback) noexcept {
    try {
      callback();
    } catch (...) {
      callback_threw(what);
    }
  }

 private:
  struct Level {
    std::string name;
    std::function<void(BatchCore&)> handler;
    int32_t index = 0;
    /// Moves barrier index + 1; its own position is that of this level.
    Barrier passed;
    /// The live elements of the turn at hand; sized once.
    std::vector<SlotHead*> batch;
    Histogram service_ns;
    std::atomic<uint64_t> skipped{0};
    std::atomic<uint64_t> failed{0};
  };
  /// A thread and the neighbouring levels that it serves.
  struct Worker {
    std::string name;
    size_t first_level = 0;
    size_t end_level = 0;
    /// Notified when barrier first_level moves. Shared with the nudge that health keeps.
    std::shared_ptr<Eventcount> event;
    std::shared_ptr<Heartbeat> heartbeat;
    std::thread thread;
  };

  void run(Worker& worker);
  /// Takes what lies before the level's barrier through it; how many that were.
  int64_t turn(Level& level);
  /// The end of what `level` may take, at most `limit`.
  int64_t try_next(const Level& level, int64_t limit) const;
  void advance(Level& level, int64_t end);
  void collect_live(Level& level, int64_t begin, int64_t end);
  void call_handler(Level& level);
  /// After a throw: how many of `slots` are decided now.
  size_t fail_thrown(Level& level, std::span<SlotHead* const> slots, size_t at);
  void finish(int64_t begin, int64_t end);
  void count(Fate fate);
  void stop_threads();
  void complete_pending();
  void consumer_threw(const Level& level);
  void callback_threw(std::string_view what) noexcept;

  SlotHead& slot_at(int64_t position) const;
  bool reserve(size_t memory);

  static constexpr int64_t kNotPassed = -1;
  // Tracing: as many records as traced elements can be in flight, each of an entry and one time per level.
  bool traced(ElementId id) const { return trace_interval_ != 0 && id % trace_interval_ == 0; }
  int64_t* trace_of(ElementId id);
  void start_trace(ElementId id);
  void stamp(const Level& level, int64_t begin, int64_t end);
  void report_trace(const SlotHead& slot);

  const DispatcherOptions options_;
  const uint64_t trace_interval_;
  const Slots slots_;
  RingCore ring_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::vector<std::string> level_names_;
  std::vector<Worker> workers_;
  std::vector<int64_t> traces_;
  std::atomic<bool> stopping_{false};
  bool started_ = false;
  bool shut_down_ = false;

  alignas(kCacheLinePair) std::atomic<size_t> memory_{0};
  /// Written by the thread that finishes elements.
  alignas(kCacheLinePair) std::array<std::atomic<uint64_t>, 7> fates_{};
  std::atomic<uint64_t> consumer_exceptions_{0};
  std::atomic<uint64_t> callback_exceptions_{0};
};

}  // namespace millrace::disruptor
