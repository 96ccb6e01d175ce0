#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace millrace::http {

/// Timers of one event loop, which owns it and alone touches it; times are nanoseconds of its steady clock. Bounded
/// by what sets timers: a few for each connection.
class TimerQueue {
 public:
  /// Unique for the life of the queue; {0, 0} is none.
  using Id = std::pair<int64_t, uint64_t>;

  Id add(int64_t due_ns, std::function<void()> fn);
  /// False when it has run or never was.
  bool cancel(Id id) { return timers_.erase(id) > 0; }
  std::optional<int64_t> next_due() const;
  /// Takes the earliest timer that is due out; run it and ask again. Null when none is.
  std::function<void()> take_due(int64_t now_ns);
  void clear() { timers_.clear(); }
  size_t size() const { return timers_.size(); }

 private:
  std::map<Id, std::function<void()>> timers_;
  uint64_t next_ = 1;
};

}  // namespace millrace::http
