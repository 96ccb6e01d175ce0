#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace millrace {

/// One loop's proof of progress. The loop calls beat() each turn; `nudge` wakes an idle loop so that it takes a
/// turn. A loop that is idle but alive therefore answers, and one that is stuck does not.
class Heartbeat {
 public:
  Heartbeat(std::string name, std::function<void()> nudge) : name_(std::move(name)), nudge_(std::move(nudge)) {}

  /// By the loop's own thread, once a turn.
  void beat() { beats_.fetch_add(1, std::memory_order_release); }
  const std::string& name() const { return name_; }

 private:
  friend class Health;
  std::string name_;
  std::function<void()> nudge_;
  std::atomic<uint64_t> beats_{0};
  // Written by Health under its mutex.
  uint64_t beats_at_nudge_ = 0;
  int64_t nudged_at_ns_ = 0;
  bool waiting_ = false;
};

/// Watches every registered loop. Owned by the daemon; check() is called by the main thread a few times per
/// watchdog period and by the health route; any thread may call anything.
class Health {
 public:
  explicit Health(const Clock& clock) : clock_(clock) {}

  /// The returned heartbeat stays watched for as long as the caller keeps it.
  std::shared_ptr<Heartbeat> watch(std::string name, std::function<void()> nudge) EXCLUDES(mutex_);

  struct LoopState {
    std::string name;
    uint64_t beats;
    /// How long the oldest nudge has gone unanswered; 0 when the last one was answered.
    int64_t unanswered_ns;
  };
  /// Nudges every loop that answered its last nudge, and reports all of them.
  std::vector<LoopState> check() EXCLUDES(mutex_);

 private:
  const Clock& clock_;
  Mutex mutex_;
  std::vector<std::weak_ptr<Heartbeat>> loops_ GUARDED_BY(mutex_);
};

}  // namespace millrace
