#include "base/timer_thread.h"

#include <algorithm>

#include "base/thread.h"

namespace millrace {

TimerThread::TimerThread(const Clock& clock, Health& health) : clock_(clock), health_(health) {}

TimerThread::~TimerThread() {
  stop();
}

TimerThread::Task TimerThread::add(std::function<int64_t()> fn, int64_t due_ms) {
  MutexLock lock(mutex_);
  tasks_.push_back({std::move(fn), due_ms});
  changed_.notify_one();
  return tasks_.size() - 1;
}

void TimerThread::run_by(Task task, int64_t due_ms) {
  MutexLock lock(mutex_);
  if (tasks_[task].due_ms <= due_ms) return;
  tasks_[task].due_ms = due_ms;
  changed_.notify_one();
}

void TimerThread::start() {
  heartbeat_ = health_.watch("timer", [this] {
    MutexLock lock(mutex_);
    changed_.notify_one();
  });
  thread_ = std::thread([this] {
    name_this_thread("timer");
    loop();
  });
}

void TimerThread::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  heartbeat_.reset();
}

void TimerThread::loop() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    heartbeat_->beat();
    auto first = std::min_element(tasks_.begin(), tasks_.end(),
                                  [](const Entry& a, const Entry& b) { return a.due_ms < b.due_ms; });
    const int64_t due = first == tasks_.end() ? kNever : first->due_ms;
    const int64_t now = now_ms();
    if (due > now) {
      // Bounded, so that a far deadline does not overflow when it becomes nanoseconds.
      const int64_t sleep_ms = std::min<int64_t>(due - now, 3'600'000);
      changed_.wait_for(mutex_, std::chrono::milliseconds(sleep_ms));
      continue;
    }
    // Asked for while it runs, it comes again.
    first->due_ms = kNever;
    const auto index = static_cast<size_t>(first - tasks_.begin());
    auto fn = first->fn;
    mutex_.unlock();
    const int64_t next = fn();
    mutex_.lock();
    tasks_[index].due_ms = std::min(tasks_[index].due_ms, next);
  }
}

}  // namespace millrace
