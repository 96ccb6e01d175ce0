#include "http/byte_stream.h"
#include "http/exchange.h"
#include "http/problem.h"
#include "http/stream_state.h"

namespace millrace::http {

/// Shared by the copies of one Responder: its end without an answer is the 500.
struct Responder::Guard {
  explicit Guard(std::shared_ptr<Exchange> guarded) : exchange(std::move(guarded)) {}
  ~Guard() {
    if (exchange->gone() || !exchange->claim()) return;
    exchange->response = problem(500, "NO_ANSWER", "the request was dropped without an answer", Retry::kUnknown);
    exchange->deliver();
  }
  std::shared_ptr<Exchange> exchange;
};

Responder::Responder(std::shared_ptr<Exchange> exchange)
    : exchange_(std::move(exchange)), guard_(std::make_shared<Guard>(exchange_)) {}

bool Responder::try_respond(Response response) const {
  if (!exchange_->claim()) return false;
  exchange_->response = std::move(response);
  exchange_->deliver();
  return true;
}

void Responder::respond(Response response) const {
  bool first = try_respond(std::move(response));
  MILLRACE_ASSERT(first, "a request is answered twice");
}

void Responder::fail(const Error& error) const {
  respond(problem(error));
}

void Responder::respond(Result<Response> result) const {
  if (result)
    respond(std::move(*result));
  else
    fail(result.error());
}

ByteStream Responder::start_stream(Response head, const StreamOptions& options) const {
  auto state = std::make_shared<StreamState>(exchange_, options);
  if (exchange_->claim()) {
    exchange_->response = std::move(head);
    exchange_->deliver(state);
  } else {
    state->cut_off(CancelReason::kClientGone);
  }
  return ByteStream(state);
}

bool Responder::finished() const {
  return exchange_->answered() || exchange_->gone();
}
void Responder::on_cancel(std::function<void(CancelReason)> fn) const {
  exchange_->set_cancel(std::move(fn));
}

void Responder::after(std::chrono::milliseconds delay, std::function<void()> fn) const {
  exchange_->add_timer(delay, std::move(fn));
}

void Responder::post(std::function<void()> fn) const {
  exchange_->loop->post(std::move(fn));
}

}  // namespace millrace::http
