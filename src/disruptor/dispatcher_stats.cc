#include <spdlog/spdlog.h>

#include <algorithm>

#include "disruptor/dispatcher_core.h"

// What a dispatcher tells about itself: figures and traces.
namespace millrace::disruptor {

DispatcherStats DispatcherCore::stats() const {
  auto fate = [&](Fate f) { return fates_[static_cast<size_t>(f)].load(std::memory_order_relaxed); };
  DispatcherStats stats;
  stats.name = options_.name;
  stats.slot_count = options_.slot_count;
  stats.max_memory = options_.max_memory;
  stats.memory_in_use = memory_.load(std::memory_order_relaxed);
  stats.threads = workers_.size();
  stats.completed = fate(Fate::kCompleted);
  stats.skipped = fate(Fate::kSkipped);
  stats.failed = fate(Fate::kFailed);
  stats.stopped = fate(Fate::kStopped);
  stats.refused_slots = fate(Fate::kFullSlots);
  stats.refused_memory = fate(Fate::kFullMemory);
  stats.refused_closed = fate(Fate::kClosed);
  stats.consumer_exceptions = consumer_exceptions_.load(std::memory_order_relaxed);
  stats.callback_exceptions = callback_exceptions_.load(std::memory_order_relaxed);

  // From the last barrier to the first: each one read later has moved at least as far, so that no lag is negative.
  stats.levels.resize(levels_.size());
  for (size_t i = levels_.size(); i-- > 0;) {
    const Level& level = *levels_[i];
    LevelStats& out = stats.levels[i];
    out.name = level.name;
    out.position = static_cast<uint64_t>(level.passed.get());
    out.skipped = level.skipped.load(std::memory_order_relaxed);
    out.failed = level.failed.load(std::memory_order_relaxed);
    out.calls = level.service_ns.count();
    out.service_ns_total = level.service_ns.sum();
    out.service_ns_p50 = level.service_ns.quantile(0.5);
    out.service_ns_p99 = level.service_ns.quantile(0.99);
  }
  stats.accepted = static_cast<uint64_t>(ring_.claimed());
  uint64_t barrier = stats.accepted;
  for (LevelStats& level : stats.levels) {
    level.lag = std::min<uint64_t>(barrier - level.position, stats.slot_count);
    barrier = level.position;
  }
  stats.slots_in_use = std::min<uint64_t>(stats.accepted - barrier, stats.slot_count);
  return stats;
}

std::string to_string(const ElementTrace& trace) {
  std::string text = fmt::format("{} element {} {}", trace.dispatcher, trace.outcome.id, to_string(trace.outcome.fate));
  if (trace.outcome.level != Outcome::kNoLevel)
    text += fmt::format(" at {} with code {:#x}", trace.level_names[static_cast<size_t>(trace.outcome.level)],
                        trace.outcome.code);
  text += ':';
  for (size_t i = 0; i < trace.passed_ns.size(); ++i)
    text += fmt::format("{} {} +{:.1f} us", i == 0 ? "" : ",", trace.level_names[i],
                        static_cast<double>(trace.passed_ns[i] - trace.entered_ns) / 1000);
  return text;
}

int64_t* DispatcherCore::trace_of(ElementId id) {
  const size_t width = levels_.size() + 1;
  return &traces_[(id / trace_interval_) % (traces_.size() / width) * width];
}

void DispatcherCore::start_trace(ElementId id) {
  int64_t* times = trace_of(id);
  times[0] = options_.clock->steady_ns();
  std::fill_n(times + 1, levels_.size(), kNotPassed);
}

void DispatcherCore::stamp(const Level& level, int64_t begin, int64_t end) {
  if (trace_interval_ == 0) return;
  // Ids are positions + 1: the first traced one in (begin, end].
  auto first = (static_cast<ElementId>(begin) / trace_interval_ + 1) * trace_interval_;
  if (first > static_cast<ElementId>(end)) return;
  const int64_t now = options_.clock->steady_ns();
  for (ElementId id = first; id <= static_cast<ElementId>(end); id += trace_interval_)
    trace_of(id)[1 + level.index] = now;
}

void DispatcherCore::report_trace(const SlotHead& slot) {
  const int64_t* times = trace_of(slot.id);
  // A stop leaves levels that the element did not reach.
  const int64_t* end = std::find(times + 1, times + 1 + levels_.size(), kNotPassed);
  ElementTrace trace{options_.name, slot.outcome(), times[0], level_names_, {times + 1, end}};
  guarded("trace receiver", [&] {
    if (options_.on_trace)
      options_.on_trace(trace);
    else
      spdlog::info("{}", to_string(trace));
  });
}

}  // namespace millrace::disruptor
