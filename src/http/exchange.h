#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "http/event_loop.h"
#include "http/request.h"
#include "http/stats.h"

namespace millrace::http {

class StreamState;

/// Who takes the answer: the session. The loop's thread only.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  /// The exchange's response is set. `stream` is its body, when that is of unknown length.
  virtual void on_answer(std::shared_ptr<StreamState> stream) = 0;
  /// A stream has something to send, or has ended.
  virtual void on_stream_data() = 0;
};

/// One request between the moment its handler is called and the end of its answer. Shared by the session, until the
/// connection goes, and the copies of the Responder. Answered once, by whoever wins claim().
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(std::shared_ptr<EventLoop> owner, std::shared_ptr<Stats> counters, AnswerSink* session, size_t body_bytes);
  ~Exchange();

  // Any thread.
  bool claim() { return !answered_.exchange(true, std::memory_order_acq_rel); }
  bool answered() const { return answered_.load(std::memory_order_acquire); }
  bool gone() const { return gone_.load(std::memory_order_acquire); }
  /// By the winner of claim(), with `response` set.
  void deliver(std::shared_ptr<StreamState> stream = nullptr);
  void set_cancel(std::function<void(CancelReason)> fn);
  void add_timer(std::chrono::milliseconds delay, std::function<void()> fn);

  const std::shared_ptr<EventLoop> loop;
  const std::shared_ptr<Stats> stats;
  /// Written by the winner before deliver(), read by the session after.
  Response response;

  // The loop's thread.
  /// Tells the handler once, unless there is an answer.
  void cancel(CancelReason reason);
  /// The connection is gone: no answer will be taken.
  void detach();
  AnswerSink* sink() const { return sink_; }

 private:
  void hand_over(std::shared_ptr<StreamState> stream);
  void drop_callbacks();

  const int64_t body_bytes_;
  std::atomic<bool> answered_{false};
  std::atomic<bool> gone_{false};
  // The loop's thread.
  AnswerSink* sink_;
  std::optional<CancelReason> cancelled_;
  std::function<void(CancelReason)> on_cancel_;
  std::vector<TimerQueue::Id> timers_;
};

}  // namespace millrace::http
