#include "worker/timers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace millrace::worker {

using store::Table;

/// Sorts behind every timer that is due earlier, and before those that are due then: their ids are not empty.
Bytes TimerQueue::before(int64_t due_ms) const {
  return bus::timer_key(home_, due_ms, {});
}

Result<std::vector<TimerQueue::Due>> TimerQueue::due(const bus::View& view, int64_t now_ms, size_t limit) {
  std::vector<Due> due;
  if (!next_ || *next_ > now_ms) return due;
  auto rows = view.list(Table::kTimers, home_.prefix(), nothing_up_to_, limit);
  if (!rows) return tl::unexpected(std::move(rows.error()));
  next_.reset();
  for (auto& [key, row] : *rows) {
    ByteView rest = ByteView(key).substr(home_.prefix().size());
    if (rest.size() < sizeof(int64_t))
      return fail(ErrorKind::kCorruption, "INVALID_TIMER_ROW", fmt::format("timer {} cannot be read", to_hex(key)));
    const auto due_ms = static_cast<int64_t>(load_be<uint64_t>(rest.data()));
    if (!next_) {
      next_ = due_ms;
      nothing_up_to_ = std::max(nothing_up_to_, before(due_ms));
    }
    if (due_ms > now_ms) break;
    Bytes id(rest.substr(sizeof(int64_t)));
    due.push_back({{due_ms, std::move(id), std::move(row.value), 0}, {Table::kTimers, key, row.version}});
  }
  return due;
}

void TimerQueue::committed(const std::vector<bus::Condition>& fired, const std::vector<bus::TimerChange>& changes) {
  if (!fired.empty()) nothing_up_to_ = std::max(nothing_up_to_, fired.back().key);
  for (const bus::TimerChange& change : changes) {
    if (!change.payload) continue;
    if (bus::timer_key(home_, change.due_ms, change.id) <= nothing_up_to_) nothing_up_to_ = before(change.due_ms);
    next_ = std::min(next_.value_or(change.due_ms), change.due_ms);
  }
}

Status TimerQueue::check(const bus::TimerChange& change) {
  if (change.due_ms < 0)
    return fail(ErrorKind::kInvalidArgument, "INVALID_TIMER",
                fmt::format("a timer cannot be due at {} ms since 1970", change.due_ms));
  if (change.id.empty() || change.id.size() > kMaxTimerIdBytes)
    return fail(ErrorKind::kInvalidArgument, "INVALID_TIMER",
                fmt::format("a timer's id has {} bytes; it has 1 to {}", change.id.size(), kMaxTimerIdBytes));
  return {};
}

}  // namespace millrace::worker
