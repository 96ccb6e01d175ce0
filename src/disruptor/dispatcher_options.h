#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/heartbeat.h"
#include "disruptor/outcome.h"
#include "disruptor/wait_strategy.h"

namespace millrace::disruptor {

/// When a traced element entered and when it had passed each level, in nanoseconds of the dispatcher's clock.
/// Valid during the call that receives it.
struct ElementTrace {
  std::string_view dispatcher;
  Outcome outcome;
  int64_t entered_ns = 0;
  std::span<const std::string> level_names;
  /// One for each level that it passed, also for those that were not shown it.
  std::span<const int64_t> passed_ns;
};

/// "transaction element 1000 completed: hash +3.1 us, recency +4.0 us, ..."
std::string to_string(const ElementTrace& trace);

struct DispatcherOptions {
  /// Names the threads ("<name>-0"), the log lines and the metrics.
  std::string name = "dispatcher";
  /// Elements in flight at most; a power of two up to kMaxSlots.
  size_t slot_count = 16'384;
  /// Bytes that the elements in flight may say they hold.
  size_t max_memory = size_t{300} << 20;
  /// When full: throw DispatcherFull at the entry, or return id 0.
  bool abort_when_full = true;
  /// Traces each element whose id is a multiple; 0 traces none.
  uint32_t element_trace_interval = 0;
  /// The levels share so many threads, neighbours together; 0: each level has its own.
  size_t threads = 1;
  /// Elements that one handler call is shown at most.
  size_t max_batch = 256;
  WaitPolicy wait = {};
  const Clock* clock = &SystemClock::instance();
  /// Where the threads prove their progress, if anywhere.
  Health* health = nullptr;
  /// Receives the traces, on the last level's thread; when empty they are logged.
  std::function<void(const ElementTrace&)> on_trace = {};

  static constexpr size_t kMaxSlots = size_t{1} << 24;
};

struct LevelStats {
  std::string name;
  /// Elements that have passed it.
  uint64_t position = 0;
  /// Elements that wait for it or are being processed by it.
  uint64_t lag = 0;
  uint64_t skipped = 0;
  uint64_t failed = 0;
  /// Handler calls, and the time in them: of one call, for one batch.
  uint64_t calls = 0;
  uint64_t service_ns_total = 0;
  uint64_t service_ns_p50 = 0;
  uint64_t service_ns_p99 = 0;
};

/// A look at a running dispatcher. Each number is right, but they are not all of one instant.
struct DispatcherStats {
  std::string name;
  uint64_t slot_count = 0;
  uint64_t slots_in_use = 0;
  uint64_t memory_in_use = 0;
  uint64_t max_memory = 0;
  uint64_t threads = 0;
  uint64_t accepted = 0;
  uint64_t completed = 0;
  uint64_t skipped = 0;
  uint64_t failed = 0;
  uint64_t stopped = 0;
  uint64_t refused_slots = 0;
  uint64_t refused_memory = 0;
  uint64_t refused_closed = 0;
  /// Exceptions that came out of consumers, and out of inspectors, completions and trace receivers.
  uint64_t consumer_exceptions = 0;
  uint64_t callback_exceptions = 0;
  std::vector<LevelStats> levels;
};

}  // namespace millrace::disruptor
