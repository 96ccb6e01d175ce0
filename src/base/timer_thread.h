#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/heartbeat.h"
#include "base/mutex.h"

namespace millrace {

/// The thread `timer`: runs tasks when they are due, and sleeps until the earliest of them. A task says itself when it
/// wants to come again, and anybody may ask for it earlier. Owned by main; any thread may call, but stop() only one
/// that runs no task. Tasks are few and live as long as the thread; they may read the store, and must not wait for
/// anything else: the thread has a heartbeat. Times are milliseconds of the clock's steady side. The clock must move by
/// itself.
class TimerThread {
 public:
  static constexpr int64_t kNever = INT64_MAX;
  using Task = size_t;

  TimerThread(const Clock& clock, Health& health);
  ~TimerThread();

  /// `fn` answers when it is due next, or kNever. It is not called before start().
  Task add(std::function<int64_t()> fn, int64_t due_ms) EXCLUDES(mutex_);
  /// Not later than that. Never blocks on a running task.
  void run_by(Task task, int64_t due_ms) EXCLUDES(mutex_);
  void start();
  /// No task runs afterwards.
  void stop() EXCLUDES(mutex_);

 private:
  struct Entry {
    std::function<int64_t()> fn;
    int64_t due_ms = kNever;
  };
  void loop() EXCLUDES(mutex_);
  int64_t now_ms() const { return clock_.steady_ns() / 1'000'000; }

  const Clock& clock_;
  Health& health_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Entry> tasks_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<Heartbeat> heartbeat_;
  std::thread thread_;
};

}  // namespace millrace
