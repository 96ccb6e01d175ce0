#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "http/byte_stream.h"
#include "http/exchange.h"

namespace millrace::http {

/// What a ByteStream's copies share with its session. Producers append under the lock from any thread; the session
/// takes the whole queue on its loop whenever its socket is free.
class StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  StreamState(std::shared_ptr<Exchange> exchange, const StreamOptions& options);

  // Any thread.
  bool write(std::string_view bytes) EXCLUDES(mutex_);
  bool closed() const EXCLUDES(mutex_);
  size_t queued_bytes() const EXCLUDES(mutex_);
  void set_on_writable(std::function<void()> fn) EXCLUDES(mutex_);
  void set_on_close(std::function<void(CancelReason)> fn) EXCLUDES(mutex_);
  void close() EXCLUDES(mutex_);
  void post(std::function<void()> fn);
  void add_timer(std::chrono::milliseconds delay, std::function<void()> fn);
  /// From the other side: no more writes, and on_close runs. Any thread.
  void cut_off(CancelReason reason) EXCLUDES(mutex_);

  // The loop's thread, by the session.
  struct Taken {
    std::string bytes;
    bool ended;  ///< nothing comes after these
  };
  Taken take() EXCLUDES(mutex_);
  /// What was taken last is with the kernel.
  void sent() EXCLUDES(mutex_);
  /// Starts the heartbeat.
  void begin();
  /// After the last byte or the loss of the connection.
  void finish() EXCLUDES(mutex_);

 private:
  size_t waiting() const REQUIRES(mutex_) { return queue_.size() + taken_; }
  void schedule_flush() REQUIRES(mutex_);
  void tick() EXCLUDES(mutex_);
  void drop_callbacks() EXCLUDES(mutex_);

  const std::shared_ptr<Exchange> exchange_;
  const StreamOptions options_;

  mutable Mutex mutex_;
  std::string queue_ GUARDED_BY(mutex_);
  size_t taken_ GUARDED_BY(mutex_) = 0;  ///< bytes with the session
  bool ended_ GUARDED_BY(mutex_) = false;
  bool flush_posted_ GUARDED_BY(mutex_) = false;
  bool refused_ GUARDED_BY(mutex_) = false;
  std::optional<CancelReason> cut_ GUARDED_BY(mutex_);
  std::function<void()> on_writable_ GUARDED_BY(mutex_);
  std::function<void(CancelReason)> on_close_ GUARDED_BY(mutex_);

  // The loop's thread.
  bool wrote_since_tick_ = true;
  std::optional<TimerQueue::Id> heartbeat_;
  std::vector<TimerQueue::Id> timers_;
};

}  // namespace millrace::http
