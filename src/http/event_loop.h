#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/heartbeat.h"
#include "base/mutex.h"
#include "http/timer_queue.h"

namespace millrace::http {

/// One `io-N` thread: an Asio context of its own, timers, and a mailbox through which other threads reach it. Sessions
/// live on one loop for good, so nothing of theirs is locked. Shared: responders and streams keep the loop alive after
/// the server is gone, when posts are dropped.
///
/// The mailbox has no bound of its own: it holds at most an answer or a flush for each open connection, and what
/// handlers post.
class EventLoop : public std::enable_shared_from_this<EventLoop> {
 public:
  explicit EventLoop(std::string name);
  ~EventLoop();

  /// Starts the thread. Once.
  void start(Health& health);
  /// Ends the thread and drops what is left in mailbox and timers. Not from the loop's own thread.
  void join();

  // Any thread.
  /// Runs `fn` on the loop. One wake-up for everything posted until the loop gets to it (one for each post costs six
  /// times as much). False when the loop has ended.
  bool post(std::function<void()> fn) EXCLUDES(mutex_);
  bool in_thread() const;
  /// At once when called on the loop.
  void run_or_post(std::function<void()> fn);
  static int64_t now_ns();

  // The loop's thread only.
  TimerQueue::Id at(int64_t due_ns, std::function<void()> fn);
  TimerQueue::Id after(std::chrono::milliseconds delay, std::function<void()> fn);
  void cancel(TimerQueue::Id id) { timers_.cancel(id); }
  /// A buffer for one read, void at the next.
  std::span<char> scratch() { return {scratch_.get(), kScratchBytes}; }
  /// Now as the Date field has it (RFC 9110 section 5.6.7), made once a second.
  std::string_view http_date();

  static constexpr size_t kScratchBytes = 64 * 1024;

 private:
  friend class Watch;
  struct Asio;

  void run();
  void drain() EXCLUDES(mutex_);
  void wake();
  void arm_timer();
  void run_timers();

  const std::string name_;
  std::unique_ptr<Asio> asio_;
  std::shared_ptr<Heartbeat> heartbeat_;
  std::unique_ptr<char[]> scratch_;
  TimerQueue timers_;
  int64_t armed_ns_ = INT64_MAX;
  int64_t date_second_ = 0;
  std::string date_;
  std::vector<std::function<void()>> running_;

  Mutex mutex_;
  std::vector<std::function<void()>> mailbox_ GUARDED_BY(mutex_);
  bool wake_posted_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
};

/// Told when a descriptor is ready. Exceptions end in on_fault.
class ReadyHandler {
 public:
  virtual ~ReadyHandler() = default;
  virtual void on_readable() = 0;
  virtual void on_writable() = 0;
  virtual void on_fault(std::string_view what) = 0;
};

/// A non-blocking descriptor, owned, watched by a loop. Reading and writing is the owner's business: an idle connection
/// then needs no buffer. The loop's thread only.
class Watch {
 public:
  Watch(EventLoop& loop, int fd);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  int fd() const;
  bool is_open() const;
  /// One call back each; keeps the handler until then, or until close().
  void wait_readable(std::shared_ptr<ReadyHandler> handler);
  void wait_writable(std::shared_ptr<ReadyHandler> handler);
  void close();

 private:
  struct Descriptor;
  std::unique_ptr<Descriptor> descriptor_;
};

/// Runs `fn`; what it throws is logged with `where`, not passed on.
void run_guarded(const std::function<void()>& fn, std::string_view where);

}  // namespace millrace::http
