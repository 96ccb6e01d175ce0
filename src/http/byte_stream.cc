#include "http/byte_stream.h"

#include <utility>

#include "http/stream_state.h"

namespace millrace::http {

StreamState::StreamState(std::shared_ptr<Exchange> exchange, const StreamOptions& options)
    : exchange_(std::move(exchange)), options_(options) {}

bool StreamState::write(std::string_view bytes) {
  MutexLock lock(mutex_);
  if (ended_ || cut_) return false;
  if (waiting() > 0 && waiting() + bytes.size() > options_.max_queued_bytes) {
    refused_ = true;
    return false;
  }
  queue_.append(bytes);
  schedule_flush();
  return true;
}

void StreamState::schedule_flush() {
  if (std::exchange(flush_posted_, true)) return;
  exchange_->loop->post([self = shared_from_this()] {
    {
      MutexLock lock(self->mutex_);
      self->flush_posted_ = false;
    }
    if (AnswerSink* sink = self->exchange_->sink()) sink->on_stream_data();
  });
}

bool StreamState::closed() const {
  MutexLock lock(mutex_);
  return ended_ || cut_.has_value();
}

size_t StreamState::queued_bytes() const {
  MutexLock lock(mutex_);
  return waiting();
}

void StreamState::set_on_writable(std::function<void()> fn) {
  std::function<void()> old;
  MutexLock lock(mutex_);
  if (ended_ || cut_) return;
  old = std::exchange(on_writable_, std::move(fn));
}

void StreamState::set_on_close(std::function<void(CancelReason)> fn) {
  std::optional<CancelReason> reason;
  {
    MutexLock lock(mutex_);
    reason = cut_;
    if (!reason && !ended_) std::swap(on_close_, fn);
  }
  if (reason) post([fn = std::move(fn), reason] { fn(*reason); });
}

void StreamState::close() {
  {
    MutexLock lock(mutex_);
    if (ended_ || cut_) return;
    ended_ = true;
    schedule_flush();
  }
  drop_callbacks();
}

void StreamState::post(std::function<void()> fn) {
  exchange_->loop->post(std::move(fn));
}

void StreamState::add_timer(std::chrono::milliseconds delay, std::function<void()> fn) {
  int64_t due = EventLoop::now_ns() + std::chrono::nanoseconds(delay).count();
  exchange_->loop->run_or_post([self = shared_from_this(), due, fn = std::move(fn)]() mutable {
    if (self->closed()) return;
    // Those that have run cannot be cancelled; forget them so that a stream of timers stays small.
    std::erase_if(self->timers_, [](TimerQueue::Id id) { return id.first <= EventLoop::now_ns(); });
    self->timers_.push_back(self->exchange_->loop->at(due, std::move(fn)));
  });
}

void StreamState::cut_off(CancelReason reason) {
  std::function<void(CancelReason)> fn;
  {
    MutexLock lock(mutex_);
    if (cut_) return;
    bool was_ended = ended_;
    cut_ = reason;
    if (!was_ended) {
      fn = std::exchange(on_close_, nullptr);
      if (reason == CancelReason::kShutdown) queue_.append(options_.goodbye_bytes);
      ended_ = true;
      schedule_flush();
    }
    if (reason == CancelReason::kClientGone) queue_.clear();
  }
  if (fn) post([fn = std::move(fn), reason] { fn(reason); });
  drop_callbacks();
}

StreamState::Taken StreamState::take() {
  MutexLock lock(mutex_);
  Taken taken{std::exchange(queue_, {}), ended_};
  taken_ = taken.bytes.size();
  if (taken_ > 0) wrote_since_tick_ = true;
  return taken;
}

void StreamState::sent() {
  std::function<void()> fn;
  {
    MutexLock lock(mutex_);
    taken_ = 0;
    if (!refused_ || waiting() > options_.max_queued_bytes / 2) return;
    refused_ = false;
    fn = on_writable_;
  }
  if (fn) run_guarded(fn, "http");
}

void StreamState::begin() {
  if (options_.heartbeat.count() > 0)
    heartbeat_ = exchange_->loop->after(options_.heartbeat, [self = shared_from_this()] { self->tick(); });
}

void StreamState::tick() {
  if (!wrote_since_tick_ && queued_bytes() == 0) write(options_.heartbeat_bytes);
  wrote_since_tick_ = false;
  begin();
}

void StreamState::finish() {
  cut_off(CancelReason::kClientGone);
  if (heartbeat_) exchange_->loop->cancel(*heartbeat_);
  for (auto id : std::exchange(timers_, {})) exchange_->loop->cancel(id);
}

// Outside the lock: what the functions captured may hold this stream's last copy.
void StreamState::drop_callbacks() {
  std::function<void()> writable;
  std::function<void(CancelReason)> close;
  MutexLock lock(mutex_);
  writable.swap(on_writable_);
  close.swap(on_close_);
}

struct ByteStream::Guard {
  explicit Guard(std::shared_ptr<StreamState> guarded) : state(std::move(guarded)) {}
  ~Guard() { state->close(); }
  std::shared_ptr<StreamState> state;
};

ByteStream::ByteStream(std::shared_ptr<StreamState> state)
    : state_(std::move(state)), guard_(std::make_shared<Guard>(state_)) {}

bool ByteStream::write(std::string_view bytes) const {
  return state_->write(bytes);
}
bool ByteStream::closed() const {
  return state_->closed();
}
size_t ByteStream::queued_bytes() const {
  return state_->queued_bytes();
}
void ByteStream::on_writable(std::function<void()> fn) const {
  state_->set_on_writable(std::move(fn));
}
void ByteStream::on_close(std::function<void(CancelReason)> fn) const {
  state_->set_on_close(std::move(fn));
}
void ByteStream::close() const {
  state_->close();
}
void ByteStream::post(std::function<void()> fn) const {
  state_->post(std::move(fn));
}

void ByteStream::after(std::chrono::milliseconds delay, std::function<void()> fn) const {
  state_->add_timer(delay, std::move(fn));
}

}  // namespace millrace::http
