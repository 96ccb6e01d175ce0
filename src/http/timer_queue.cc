#include "http/timer_queue.h"

namespace millrace::http {

TimerQueue::Id TimerQueue::add(int64_t due_ns, std::function<void()> fn) {
  Id id{due_ns, next_++};
  timers_.emplace(id, std::move(fn));
  return id;
}

std::optional<int64_t> TimerQueue::next_due() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first.first;
}

std::function<void()> TimerQueue::take_due(int64_t now_ns) {
  if (timers_.empty() || timers_.begin()->first.first > now_ns) return nullptr;
  auto fn = std::move(timers_.begin()->second);
  timers_.erase(timers_.begin());
  return fn;
}

}  // namespace millrace::http
