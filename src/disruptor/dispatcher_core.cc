#include "disruptor/dispatcher_core.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/thread.h"

namespace millrace::disruptor {
namespace {

Status bad_option(const DispatcherOptions& options, const std::string& what) {
  return fail(ErrorKind::kInvalidArgument, "DISPATCHER_OPTIONS",
              fmt::format("dispatcher '{}': {}", options.name, what));
}

/// The message of the exception being handled.
std::string current_exception_text() noexcept {
  try {
    try {
      throw;
    } catch (const std::exception& e) {
      return e.what();
    } catch (...) {
      return "not a std::exception";
    }
  } catch (...) {
    return {};  // no memory for the text
  }
}

/// A flood of exceptions must not become a flood of log lines: the 1st, 2nd, 4th, 8th, .. is logged.
bool worth_a_line(uint64_t nth) {
  return std::has_single_bit(nth);
}

}  // namespace

Status DispatcherCore::check(const DispatcherOptions& options, const std::vector<LevelSpec>& levels) {
  if (options.name.empty()) return bad_option(options, "the name is empty");
  if (!std::has_single_bit(options.slot_count) || options.slot_count > DispatcherOptions::kMaxSlots)
    return bad_option(options, fmt::format("slot count {} is not a power of two between 1 and {}", options.slot_count,
                                           DispatcherOptions::kMaxSlots));
  if (options.max_memory == 0) return bad_option(options, "max memory is 0 bytes, so no element would fit");
  if (options.max_batch == 0) return bad_option(options, "max batch is 0");
  if (options.clock == nullptr) return bad_option(options, "there is no clock");
  if (levels.empty()) return bad_option(options, "there are no levels");
  if (options.threads > levels.size())
    return bad_option(options, fmt::format("{} threads for {} levels", options.threads, levels.size()));
  std::set<std::string_view> names;
  for (const auto& level : levels) {
    if (level.name.empty()) return bad_option(options, "a level has no name");
    if (!level.handler) return bad_option(options, fmt::format("level '{}' has no handler", level.name));
    if (!names.insert(level.name).second)
      return bad_option(options, fmt::format("two levels are named '{}'", level.name));
  }
  return {};
}

DispatcherCore::DispatcherCore(DispatcherOptions options, std::vector<LevelSpec> levels, Slots slots)
    : options_(std::move(options)),
      trace_interval_(options_.element_trace_interval),
      slots_(std::move(slots)),
      ring_(options_.slot_count, Producers::kMulti) {
  for (auto& spec : levels) {
    auto level = std::make_unique<Level>();
    level->name = spec.name;
    level->handler = std::move(spec.handler);
    level->index = static_cast<int32_t>(levels_.size());
    level->batch.reserve(std::min(options_.max_batch, options_.slot_count));
    level_names_.push_back(std::move(spec.name));
    levels_.push_back(std::move(level));
  }
  ring_.gate_on(levels_.back()->passed);
  if (trace_interval_ != 0) traces_.resize((options_.slot_count / trace_interval_ + 2) * (levels_.size() + 1));

  const size_t threads = options_.threads == 0 ? levels_.size() : options_.threads;
  workers_.resize(threads);
  for (size_t i = 0; i < threads; ++i) {
    Worker& worker = workers_[i];
    worker.name = fmt::format("{}-{}", options_.name, i);
    worker.first_level = i * levels_.size() / threads;
    worker.end_level = (i + 1) * levels_.size() / threads;
    worker.event = i == 0 ? ring_.published_event() : std::make_shared<Eventcount>();
    if (i > 0) levels_[worker.first_level - 1]->passed.wakes(*worker.event);
  }
}

DispatcherCore::~DispatcherCore() {
  shutdown(Pending::kFail);
}

void DispatcherCore::start() {
  started_ = true;
  for (Worker& worker : workers_) {
    if (options_.health != nullptr)
      worker.heartbeat = options_.health->watch(worker.name, [event = worker.event] { event->interrupt(); });
    worker.thread = std::thread([this, &worker] { run(worker); });
  }
}

void DispatcherCore::run(Worker& worker) {
  name_this_thread(worker.name);
  Level& first = *levels_[worker.first_level];
  for (;;) {
    // The key comes before the beat, so that a nudge after the beat is answered by another turn.
    auto key = worker.event->key();
    if (worker.heartbeat) worker.heartbeat->beat();
    if (stopping_.load(std::memory_order_acquire)) return;
    const int64_t taken = turn(first);
    bool worked = taken > 0;
    for (size_t i = worker.first_level + 1; i < worker.end_level; ++i) worked |= turn(*levels_[i]) > 0;
    if (worked) {
      if (taken > 0) let_batch_grow(taken, options_.wait);
      continue;
    }
    // The thread's other levels are empty: only its first barrier can bring work.
    int64_t position = first.passed.own();
    worker.event->wait(key, options_.wait, [&] { return try_next(first, position + 1) > position; });
  }
}

// --- one level's turn

int64_t DispatcherCore::try_next(const Level& level, int64_t limit) const {
  if (level.index == 0) return ring_.highest_published(level.passed.own(), limit);
  return std::min(limit, levels_[static_cast<size_t>(level.index) - 1]->passed.get());
}

void DispatcherCore::advance(Level& level, int64_t end) {
  level.passed.advance(end);
}

int64_t DispatcherCore::turn(Level& level) {
  const int64_t begin = level.passed.own();
  const int64_t end = try_next(level, begin + static_cast<int64_t>(level.batch.capacity()));
  if (end == begin) return 0;
  collect_live(level, begin, end);
  if (!level.batch.empty()) {
    const int64_t started_ns = options_.clock->steady_ns();
    call_handler(level);
    level.service_ns.record(static_cast<uint64_t>(options_.clock->steady_ns() - started_ns));
  }
  stamp(level, begin, end);
  if (&level == levels_.back().get()) finish(begin, end);
  advance(level, end);
  return end - begin;
}

void DispatcherCore::collect_live(Level& level, int64_t begin, int64_t end) {
  level.batch.clear();
  for (int64_t position = begin; position < end; ++position) {
    SlotHead& slot = slot_at(position);
    if (slot.live()) level.batch.push_back(&slot);
  }
}

void DispatcherCore::call_handler(Level& level) {
  std::span<SlotHead* const> slots = level.batch;
  while (!slots.empty()) {
    BatchCore batch(slots, level.index);
    try {
      level.handler(batch);
      break;
    } catch (...) {
      consumer_threw(level);
      slots = slots.subspan(fail_thrown(level, slots, batch.at()));
    }
  }
  uint64_t skipped = 0;
  for (const SlotHead* slot : level.batch) skipped += slot->fate == Fate::kSkipped;
  if (skipped > 0) level.skipped.fetch_add(skipped, std::memory_order_relaxed);
}

size_t DispatcherCore::fail_thrown(Level& level, std::span<SlotHead* const> slots, size_t at) {
  auto fail_one = [&](SlotHead& slot) {
    slot.stop(Fate::kFailed, 0, level.index);
    level.failed.fetch_add(1, std::memory_order_relaxed);
  };
  if (at == BatchCore::kNone) {
    for (SlotHead* slot : slots)
      if (slot->live()) fail_one(*slot);
    return slots.size();
  }
  fail_one(*slots[at]);
  // The rest is shown again: what was said of it in the call that threw does not count.
  for (SlotHead* slot : slots.subspan(at + 1)) slot->stop(Fate::kCompleted, 0, Outcome::kNoLevel);
  return at + 1;
}

void DispatcherCore::finish(int64_t begin, int64_t end) {
  size_t memory = 0;
  for (int64_t position = begin; position < end; ++position) {
    SlotHead& slot = slot_at(position);
    if (traced(slot.id)) report_trace(slot);
    memory += slot.memory;
    slots_.finish(slot, slot.outcome());
    count(slot.fate);
  }
  memory_.fetch_sub(memory, std::memory_order_acq_rel);
}

// --- the entry

SlotHead& DispatcherCore::slot_at(int64_t position) const {
  return *reinterpret_cast<SlotHead*>(reinterpret_cast<std::byte*>(slots_.first) +
                                      slots_.stride * ring_.slot_of(position));
}

bool DispatcherCore::reserve(size_t memory) {
  size_t in_use = memory_.load(std::memory_order_relaxed);
  do {
    if (memory > options_.max_memory || in_use > options_.max_memory - memory) return false;
  } while (!memory_.compare_exchange_weak(in_use, in_use + memory, std::memory_order_acq_rel));
  return true;
}

SlotHead* DispatcherCore::enter(size_t memory, Fate& refusal) {
  if (!reserve(memory)) {
    refusal = ring_.closed() ? Fate::kClosed : Fate::kFullMemory;
    return nullptr;
  }
  const int64_t position = ring_.try_claim();
  if (position < 0) {
    memory_.fetch_sub(memory, std::memory_order_acq_rel);
    refusal = position == RingCore::kClosed ? Fate::kClosed : Fate::kFullSlots;
    return nullptr;
  }
  SlotHead& slot = slot_at(position);
  slot.id = static_cast<ElementId>(position) + 1;
  slot.memory = memory;
  slot.stop(Fate::kCompleted, 0, Outcome::kNoLevel);
  if (traced(slot.id)) start_trace(slot.id);
  return &slot;
}

void DispatcherCore::publish(SlotHead& slot) {
  ring_.publish(static_cast<int64_t>(slot.id) - 1);
}

void DispatcherCore::refused(Fate fate, size_t memory) {
  count(fate);
  if (!options_.abort_when_full || fate == Fate::kClosed) return;
  throw DispatcherFull(
      fmt::format("dispatcher '{}' is full: {} of {} slots and {} of {} bytes in use, {} bytes refused", options_.name,
                  ring_.claimed() - ring_.freed(), options_.slot_count, memory_.load(std::memory_order_relaxed),
                  options_.max_memory, memory));
}

void DispatcherCore::count(Fate fate) {
  fates_[static_cast<size_t>(fate)].fetch_add(1, std::memory_order_relaxed);
}

// --- the stop

void DispatcherCore::shutdown(Pending pending) {
  if (shut_down_) return;
  shut_down_ = true;
  ring_.close();
  if (started_ && pending == Pending::kDrain) ring_.wait_freed(ring_.claimed(), options_.wait);
  stop_threads();
  complete_pending();
}

void DispatcherCore::stop_threads() {
  stopping_.store(true, std::memory_order_release);
  for (Worker& worker : workers_) {
    worker.event->interrupt();
    if (!worker.thread.joinable()) continue;
    MILLRACE_ASSERT(worker.thread.get_id() != std::this_thread::get_id(), "a dispatcher shut down by its own consumer");
    worker.thread.join();
    worker.heartbeat.reset();
  }
}

void DispatcherCore::complete_pending() {
  const int64_t end = ring_.claimed();
  for (int64_t position = levels_.back()->passed.own(); position < end; ++position) {
    // Its producer may still be between claiming and publishing; that takes no longer than a move.
    for (;;) {
      auto key = ring_.published_event()->key();
      if (ring_.is_published(position) || ring_.wait_published(position, key, options_.wait)) break;
    }
    SlotHead& slot = slot_at(position);
    if (slot.live()) {
      auto reached = std::find_if(levels_.begin(), levels_.end(),
                                  [&](const auto& level) { return level->passed.own() <= position; });
      slot.stop(Fate::kStopped, 0, (*reached)->index);
    }
    finish(position, position + 1);
    advance(*levels_.back(), position + 1);
  }
}

// --- exceptions

void DispatcherCore::consumer_threw(const Level& level) {
  uint64_t nth = consumer_exceptions_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (worth_a_line(nth))
    spdlog::error("dispatcher {}: consumer '{}' threw: {} (exception {} of this dispatcher's consumers)", options_.name,
                  level.name, current_exception_text(), nth);
}

void DispatcherCore::callback_threw(std::string_view what) noexcept {
  uint64_t nth = callback_exceptions_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!worth_a_line(nth)) return;
  try {
    spdlog::error("dispatcher {}: {} threw: {} (exception {} of this dispatcher's callbacks)", options_.name, what,
                  current_exception_text(), nth);
  } catch (...) {
    // Counted already; there is nobody left to tell.
  }
}

}  // namespace millrace::disruptor
