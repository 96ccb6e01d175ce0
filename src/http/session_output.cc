#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

#include "http/problem.h"
#include "http/response_head.h"
#include "http/session.h"

// The second half of Session: answers, streams, and how a connection ends.
namespace millrace::http {
namespace {

constexpr std::string_view kLastChunk = "0\r\n\r\n";
constexpr std::string_view kChunkEnd = "\r\n";
constexpr std::string_view kChunkEndAndLastChunk = "\r\n0\r\n\r\n";

size_t status_class(int status) {
  return static_cast<size_t>(status / 100) % 6;
}

}  // namespace

void Session::refuse(const Refusal& refusal) {
  keep_alive_ = false;
  linger_ = true;
  send(answer(refusal, *context_->stats).response);
}

void Session::answer_without_handler(Answered answered) {
  bool body_is_small = !head_.chunked ? head_.content_length.value_or(0) <= 64 * 1024 : true;
  if (head_.has_body() && !answered.fatal && body_is_small && !head_.headers.find("Expect")) {
    state_ = State::kBody;
    reader_.begin(head_);
    refused_ = std::move(answered);
    return;
  }
  if (answered.fatal || head_.has_body()) {
    keep_alive_ = false;
    linger_ = true;
  }
  send(std::move(answered.response));
}

void Session::on_answer(std::shared_ptr<StreamState> stream) {
  auto self = shared_from_this();
  request_->route->latency_ns->record(static_cast<uint64_t>(EventLoop::now_ns() - dispatched_ns_));
  Response response = std::move(exchange_->response);
  if (stream)
    begin_stream(std::move(response), std::move(stream));
  else
    send(std::move(response));
}

std::string Session::head_for(const Response& response, bool streaming) {
  const Options& options = context_->options;
  bool enough = options.max_requests_per_connection > 0 && requests_ >= options.max_requests_per_connection;
  if (keep_alive_ && (enough || context_->draining.load(std::memory_order_relaxed))) {
    keep_alive_ = false;
    linger_ = true;
  }
  context_->stats->responses[status_class(response.status)].fetch_add(1, std::memory_order_relaxed);
  return format_head(response, {.version = head_.version,
                                .keep_alive = keep_alive_,
                                .streaming = streaming,
                                .date = loop_->http_date(),
                                .request_id = request_id_,
                                .cors_origin = cors_origin_});
}

void Session::send(Response response) {
  state_ = State::kWriting;
  clear_deadline();
  out_head_ = head_for(response, false);
  out_body_ = head_only_ || !has_body(response.status) ? std::string() : std::move(response.body);
  out_tail_ = {};
  if (flush()) on_flushed();
}

void Session::begin_stream(Response head, std::shared_ptr<StreamState> stream) {
  if (head_only_) {
    stream->finish();
    head.body.clear();
    if (head_.version < 11) keep_alive_ = false;
    state_ = State::kWriting;
    out_head_ = head_for(head, true);
    if (flush()) on_flushed();
    return;
  }
  state_ = State::kStreaming;
  if (head_.version < 11) keep_alive_ = false;
  stream_ = std::move(stream);
  context_->stats->streams.fetch_add(1, std::memory_order_relaxed);
  out_head_ = head_for(head, true);
  stream_->begin();
  if (context_->draining.load(std::memory_order_relaxed)) stream_->cut_off(CancelReason::kShutdown);
  pump_stream();
  watch_input();
}

void Session::on_stream_data() {
  auto self = shared_from_this();
  if (state_ == State::kStreaming && !writing_) pump_stream();
}

// Sends what the stream has queued, as one chunk. What is queued while this is under way posts a flush of its own.
void Session::pump_stream() {
  auto [bytes, ended] = stream_->take();
  bool chunked = head_.version >= 11;
  if (!bytes.empty() && chunked) out_head_ += fmt::format("{:x}\r\n", bytes.size());
  if (chunked && ended)
    out_tail_ = bytes.empty() ? kLastChunk : kChunkEndAndLastChunk;
  else
    out_tail_ = chunked && !bytes.empty() ? kChunkEnd : std::string_view();
  out_body_ = std::move(bytes);
  stream_ending_ = ended;
  if (flush()) on_flushed();
}

void Session::on_writable() {
  if (state_ == State::kClosed) return;
  writing_ = false;
  if (!flush()) return;
  on_flushed();
  // While the socket was full, the stream's flushes found us busy.
  if (state_ == State::kStreaming && !writing_) pump_stream();
}

// True when everything is with the kernel; else it goes on in on_writable, or the session is closed.
bool Session::flush() {
  while (true) {
    std::array<iovec, 3> parts{};
    size_t count = 0, skip = out_sent_, total = 0;
    for (std::string_view part : {std::string_view(out_head_), std::string_view(out_body_), out_tail_}) {
      total += part.size();
      size_t done = std::min(skip, part.size());
      skip -= done;
      if (done < part.size()) parts[count++] = {const_cast<char*>(part.data()) + done, part.size() - done};
    }
    if (out_sent_ == total) return true;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    ssize_t put = ::sendmsg(watch_.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (put < 0) {
      close();
      return false;
    }
    out_sent_ += static_cast<size_t>(put);
    context_->stats->bytes_out.fetch_add(static_cast<uint64_t>(put), std::memory_order_relaxed);
  }
  writing_ = true;
  set_deadline(context_->options.write_timeout);
  watch_.wait_writable(shared_from_this());
  watch_input();
  return false;
}

void Session::on_flushed() {
  out_head_ = {};
  out_body_ = {};
  out_tail_ = {};
  out_sent_ = 0;
  if (state_ != State::kStreaming) return finish_response();
  clear_deadline();
  if (stream_ending_) return finish_response();
  stream_->sent();
}

void Session::finish_response() {
  // Handles of the stream may outlive this connection.
  if (exchange_) exchange_->detach();
  exchange_.reset();
  if (stream_) {
    std::exchange(stream_, nullptr)->finish();
    context_->stats->streams.fetch_sub(1, std::memory_order_relaxed);
  }
  forget_request();
  if (!keep_alive_ || context_->draining.load(std::memory_order_relaxed)) return close_in_order();
  if (input_ended_ && pending_.empty() && !processing_) return close();
  state_ = State::kIdle;
  set_deadline(context_->options.idle_timeout);
  if (processing_) return;  // process() goes on with what it has.
  resume();
  if (input_ended_ && (state_ == State::kIdle || state_ == State::kHeader || state_ == State::kBody)) return close();
  watch_input();
}

// A close with unread input is a reset, which can overtake the answer: then the client gets its end of file first
// and time to read.
void Session::close_in_order() {
  if (input_ended_ || (!linger_ && pending_.empty())) return close();
  ::shutdown(watch_.fd(), SHUT_WR);
  state_ = State::kLingering;
  if (!processing_) pending_ = {};
  set_deadline(context_->options.linger_timeout);
  watch_input();
}

}  // namespace millrace::http
