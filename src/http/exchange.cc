#include "http/exchange.h"

#include <utility>

#include "http/stream_state.h"

namespace millrace::http {

Exchange::Exchange(std::shared_ptr<EventLoop> owner, std::shared_ptr<Stats> counters, AnswerSink* session,
                   size_t body_bytes)
    : loop(std::move(owner)),
      stats(std::move(counters)),
      body_bytes_(static_cast<int64_t>(body_bytes)),
      sink_(session) {
  stats->in_flight.fetch_add(1, std::memory_order_relaxed);
}

Exchange::~Exchange() {
  stats->in_flight.fetch_sub(1, std::memory_order_relaxed);
  // The body counts until its handler has let go of the request, also when the client has long gone.
  stats->body_bytes.fetch_sub(body_bytes_, std::memory_order_relaxed);
}

void Exchange::deliver(std::shared_ptr<StreamState> stream) {
  if (loop->in_thread()) {
    hand_over(std::move(stream));
    return;
  }
  bool posted = loop->post([self = shared_from_this(), stream] { self->hand_over(stream); });
  if (!posted && stream) stream->cut_off(CancelReason::kClientGone);
}

void Exchange::hand_over(std::shared_ptr<StreamState> stream) {
  auto self = shared_from_this();
  drop_callbacks();
  if (sink_ != nullptr)
    sink_->on_answer(std::move(stream));
  else if (stream)
    stream->finish();
}

void Exchange::set_cancel(std::function<void(CancelReason)> fn) {
  loop->run_or_post([self = shared_from_this(), fn = std::move(fn)]() mutable {
    if (self->answered()) return;
    if (self->cancelled_)
      fn(*self->cancelled_);
    else
      self->on_cancel_ = std::move(fn);
  });
}

void Exchange::add_timer(std::chrono::milliseconds delay, std::function<void()> fn) {
  int64_t due = EventLoop::now_ns() + std::chrono::nanoseconds(delay).count();
  loop->run_or_post([self = shared_from_this(), due, fn = std::move(fn)]() mutable {
    if (self->answered() || self->gone()) return;
    self->timers_.push_back(self->loop->at(due, std::move(fn)));
  });
}

void Exchange::cancel(CancelReason reason) {
  auto self = shared_from_this();  // The handler may answer, and then the session lets go of us.
  if (answered()) return;
  cancelled_ = reason;
  if (auto fn = std::exchange(on_cancel_, nullptr)) run_guarded([&] { fn(reason); }, "http");
}

void Exchange::detach() {
  auto self = shared_from_this();
  gone_.store(true, std::memory_order_release);
  sink_ = nullptr;
  cancel(CancelReason::kClientGone);
  drop_callbacks();
}

void Exchange::drop_callbacks() {
  for (auto id : std::exchange(timers_, {})) loop->cancel(id);
  // Destroyed after the member is empty: what it captured may hold the last responder.
  auto dropped = std::exchange(on_cancel_, nullptr);
}

}  // namespace millrace::http
