#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace millrace::cli {

/// The wish to end, from SIGINT, SIGTERM, or a reader of our output that has gone. Owned by main; raised on its own
/// thread, asked and waited for by the command's. A second signal ends the process at once.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Takes over the two signals and watches the pipe, if `output` is one. Before any other thread is started.
  void watch(int output);
  void raise();

  bool raised() const { return raised_.load(std::memory_order_acquire); }
  /// It was the reader: the command has done what was wanted of it.
  bool reader_gone() const { return reader_gone_.load(std::memory_order_acquire); }
  /// Readable from the moment of the wish on, for poll().
  int fd() const { return event_fd_; }
  /// Sleeps; true as soon as there is the wish.
  bool wait_for(std::chrono::milliseconds time) const;
  /// Called once, on the raising thread, or at once when it is too late. nullptr takes it back.
  void on_raise(std::function<void()> fn) EXCLUDES(mutex_);

 private:
  void loop(int output);

  int event_fd_, stop_fd_, signal_fd_ = -1;
  std::atomic<bool> raised_{false};
  std::atomic<bool> reader_gone_{false};
  Mutex mutex_;
  std::function<void()> on_raise_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace millrace::cli
