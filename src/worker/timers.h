#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bus/commit_log.h"
#include "worker/processor.h"

namespace millrace::worker {

/// The durable timers of one home: which are due, and when to look again. It knows every timer that is set, because
/// only the lease's owner sets any; others may cancel. So it remembers below which key there is nothing, and a scan
/// does not walk over what was fired and deleted before. The rows are the truth; nothing here changes before its
/// commit.
///
/// A timer is due by the clock of the moment at which it is looked for. From then on its row decides: firing is
/// conditioned on the row's version and deletes it. By its worker's thread.
class TimerQueue {
 public:
  explicit TimerQueue(bus::Home home) : home_(std::move(home)) {}

  struct Due {
    DueTimer timer;
    bus::Condition row;
  };
  /// The first of the due timers, in order of (due, id), at most `limit`. Errors: those of View::list.
  Result<std::vector<Due>> due(const bus::View& view, int64_t now_ms, size_t limit);

  /// When the next timer is due, as far as is known after due() found none.
  std::optional<int64_t> next_due() const { return next_; }

  /// A commit is durable that fired the first `fired` of what due() answered and made `changes`.
  void committed(const std::vector<bus::Condition>& fired, const std::vector<bus::TimerChange>& changes);

  /// What a step may not ask for. Errors: kInvalidArgument INVALID_TIMER.
  static Status check(const bus::TimerChange& change);

 private:
  Bytes before(int64_t due_ms) const;

  bus::Home home_;
  Bytes nothing_up_to_;              ///< no timer's key is at most this
  std::optional<int64_t> next_ = 0;  ///< no timer is due earlier; nullopt: there is none
};

}  // namespace millrace::worker
