#include "http/session.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "http/problem.h"

namespace millrace::http {
namespace {

// A refused request's body up to this size is read and dropped, so that the connection can be kept.
constexpr uint64_t kDroppedBodyBytes = 64 * 1024;
// How much a refused client may still send while it reads why.
constexpr size_t kMaxLingerBytes = 16 * 1024 * 1024;
// One session's turn: then the others of its loop.
constexpr int kReadsPerTurn = 4;

bool is_token_char(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// What can never become a request is refused before its header is complete: a TLS handshake, bare LF, NUL.
std::optional<Refusal> check_unfinished(std::string_view bytes, size_t from) {
  if (!is_token_char(bytes[0]))
    return Refusal{400, "MALFORMED_REQUEST", "this is not the beginning of an HTTP request (plain HTTP/1.1, no TLS)",
                   Rejected::kBadRequest, true};
  for (size_t at = bytes.find('\n', from); at != std::string_view::npos; at = bytes.find('\n', at + 1))
    if (at == 0 || bytes[at - 1] != '\r')
      return Refusal{400, "MALFORMED_REQUEST", "a header line does not end with CRLF", Rejected::kBadRequest, true};
  if (bytes.find('\0', from) != std::string_view::npos)
    return Refusal{400, "MALFORMED_REQUEST", "the header contains a NUL", Rejected::kBadRequest, true};
  return std::nullopt;
}

// The client's own id when it is harmless in logs and headers.
std::string request_id_from(const Headers& headers) {
  constexpr size_t kLongest = 64;
  auto given = headers.find("X-Request-Id");
  if (!given || given->empty() || given->size() > kLongest) return {};
  return std::all_of(given->begin(), given->end(), is_token_char) ? std::string(*given) : std::string();
}

}  // namespace

Session::Session(SessionOwner& owner, std::shared_ptr<ServerContext> context, std::shared_ptr<EventLoop> loop, int fd,
                 Peer peer)
    : owner_(owner),
      context_(std::move(context)),
      loop_(std::move(loop)),
      peer_(std::move(peer)),
      watch_(*loop_, fd),
      connection_(context_->next_connection.fetch_add(1, std::memory_order_relaxed)) {
  context_->stats->connections_opened.fetch_add(1, std::memory_order_relaxed);
}

void Session::start() {
  set_deadline(context_->options.idle_timeout);
  watch_input();
}

void Session::refuse_connection(Response response) {
  admitted_ = false;
  keep_alive_ = false;
  linger_ = true;
  send(std::move(response));
}

void Session::drain() {
  auto self = shared_from_this();
  switch (state_) {
    case State::kIdle:
      read_input();  // A request that has arrived is still answered.
      if (state_ == State::kIdle) close();
      return;
    case State::kHandling:
      exchange_->cancel(CancelReason::kShutdown);
      return;
    case State::kStreaming:
      stream_->cut_off(CancelReason::kShutdown);
      return;
    default:
      return;  // ends by itself: no connection is kept while the server drains
  }
}

void Session::close() {
  if (state_ == State::kClosed) return;
  auto self = shared_from_this();
  state_ = State::kClosed;
  if (timer_.second != 0) loop_->cancel(timer_);
  watch_.close();
  if (exchange_) exchange_->detach();
  exchange_.reset();
  if (stream_) {
    stream_->finish();
    stream_.reset();
    context_->stats->streams.fetch_sub(1, std::memory_order_relaxed);
  }
  forget_request();
  context_->stats->connections_closed.fetch_add(1, std::memory_order_relaxed);
  owner_.on_session_closed(*this);
}

void Session::on_fault(std::string_view what) {
  spdlog::error("http: the session of {} failed: {}", peer_.text, what);
  close();
}

void Session::on_readable() {
  waiting_for_input_ = false;
  read_input();
}

// While a request is handled, no more than the next header waits here; the kernel keeps the rest.
size_t Session::room() const {
  switch (state_) {
    case State::kIdle:
    case State::kHeader:
    case State::kBody:
    case State::kLingering:
      return EventLoop::kScratchBytes;
    default:
      return context_->options.max_header_bytes - std::min(context_->options.max_header_bytes, pending_.size());
  }
}

void Session::watch_input() {
  if (waiting_for_input_ || input_ended_ || state_ == State::kClosed || room() == 0) return;
  waiting_for_input_ = true;
  watch_.wait_readable(shared_from_this());
}

void Session::read_input() {
  for (int turn = 0; turn < kReadsPerTurn && state_ != State::kClosed && !input_ended_; ++turn) {
    size_t wanted = std::min(room(), EventLoop::kScratchBytes);
    if (wanted == 0) break;
    ssize_t got = ::recv(watch_.fd(), loop_->scratch().data(), wanted, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got < 0) return close();
    if (got == 0) {
      on_end_of_input();
      break;
    }
    context_->stats->bytes_in.fetch_add(static_cast<uint64_t>(got), std::memory_order_relaxed);
    take({loop_->scratch().data(), static_cast<size_t>(got)});
    if (static_cast<size_t>(got) < wanted) break;
  }
  watch_input();
}

void Session::take(std::string_view bytes) {
  if (state_ == State::kLingering) {
    lingered_bytes_ += bytes.size();
    if (lingered_bytes_ > kMaxLingerBytes) close();
    return;
  }
  if (!pending_.empty()) {
    pending_.append(bytes);
    return resume();
  }
  size_t used = process(bytes);
  if (state_ != State::kClosed && state_ != State::kLingering) pending_.assign(bytes.substr(used));
}

void Session::resume() {
  if (processing_ || pending_.empty()) return;
  size_t used = process(pending_);
  pending_.erase(0, used);
  constexpr size_t kIdleCapacity = 1024;
  if (pending_.empty() && pending_.capacity() > kIdleCapacity) pending_ = {};
}

// `bytes` must stay in place meanwhile, also while handlers answer at once.
size_t Session::process(std::string_view bytes) {
  processing_ = true;
  size_t used = 0;
  for (bool more = true; more && used < bytes.size();) {
    std::string_view rest = bytes.substr(used);
    more = false;
    if (state_ == State::kIdle) {
      state_ = State::kHeader;
      set_deadline(context_->options.request_deadline);
    }
    if (state_ == State::kHeader)
      used += read_header(rest, more);
    else if (state_ == State::kBody)
      used += read_body(rest, more);
  }
  processing_ = false;
  return used;
}

size_t Session::read_header(std::string_view bytes, bool& more) {
  // RFC 9112 section 2.2: one empty line before a request is tolerated.
  if (!blank_line_skipped_ && bytes[0] == '\r') {
    if (bytes.size() < 2) return 0;
    if (bytes[1] == '\n') {
      blank_line_skipped_ = true;
      more = true;
      return 2;
    }
  }
  size_t limit = context_->options.max_header_bytes;
  size_t end = find_header_end(bytes, scanned_);
  if (end == std::string_view::npos ? bytes.size() > limit : end > limit) {
    refuse({431, "HEADER_TOO_LARGE", fmt::format("the request's header is larger than {} bytes", limit),
            Rejected::kHeaderTooLarge, true});
    return bytes.size();
  }
  if (end == std::string_view::npos) {
    auto refusal = check_unfinished(bytes, scanned_);
    scanned_ = bytes.size();
    if (refusal) refuse(*refusal);
    return refusal ? bytes.size() : 0;
  }
  more = true;
  begin_request(bytes.substr(0, end), bytes.size() > end);
  return end;
}

void Session::begin_request(std::string_view header, bool body_follows) {
  ++requests_;
  head_.headers.reserve(header.size(), 16);
  if (auto refusal = check_head_bytes(header, context_->options)) return refuse(*refusal);
  if (auto refusal = parse_head(header, head_)) return refuse(*refusal);
  if (auto refusal = check_framing(head_)) return refuse(*refusal);
  if (auto refusal = take_absolute_form(head_)) return refuse(*refusal);
  keep_alive_ = head_.keep_alive;
  linger_ = head_.keep_alive;  // A close that is not the client's wish finds it sending, perhaps.
  head_only_ = head_.method == "HEAD";
  request_id_ = request_id_from(head_.headers);
  if (request_id_.empty()) request_id_ = fmt::format("{}-{:x}-{:x}", context_->run_id, connection_, requests_);
  cors_origin_ = cors_origin(head_, context_->policy);
  auto verdict = admit(head_, *context_, peer_.local);
  if (auto* answered = std::get_if<Answered>(&verdict)) return answer_without_handler(std::move(*answered));
  request_ = std::move(std::get<Admitted>(verdict));
  begin_body(body_follows);
}

void Session::begin_body(bool body_follows) {
  if (!head_.has_body()) return dispatch();
  state_ = State::kBody;
  reader_.begin(head_);
  if (head_.version < 11 || body_follows || !head_.headers.find("Expect")) return;
  // Nothing is queued at this point, so the few bytes fit or the connection is dead.
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  if (::send(watch_.fd(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL) != ssize_t{kContinue.size()}) close();
}

size_t Session::read_body(std::string_view bytes, bool& more) {
  size_t used = 0;
  auto refusal = reader_.feed(bytes, refused_ ? kDroppedBodyBytes : request_->max_body, body_, used);
  if (refusal && refused_) {
    keep_alive_ = false;
    linger_ = true;
    send(std::move(std::exchange(refused_, std::nullopt)->response));
  } else if (refusal) {
    refuse(*refusal);
  }
  if (refusal || !charge_body()) return bytes.size();
  more = true;
  if (reader_.done()) finish_body();
  return used;
}

bool Session::charge_body() {
  auto grown = static_cast<int64_t>(body_.size() - body_charged_);
  int64_t all = context_->stats->body_bytes.fetch_add(grown, std::memory_order_relaxed) + grown;
  body_charged_ = body_.size();
  if (grown <= 0 || static_cast<uint64_t>(all) <= context_->options.max_body_bytes_in_flight) return true;
  refuse({503, "BODY_MEMORY_EXHAUSTED",
          fmt::format("request bodies in flight would take more than {} bytes",
                      context_->options.max_body_bytes_in_flight),
          Rejected::kBodyMemory, true});
  return false;
}

void Session::finish_body() {
  if (!refused_) return dispatch();
  send(std::move(std::exchange(refused_, std::nullopt)->response));
}

void Session::dispatch() {
  state_ = State::kHandling;
  clear_deadline();
  Request request{request_->method == Method::kHead ? Method::kGet : request_->method,
                  std::move(head_.target),
                  std::move(request_->params),
                  std::move(head_.headers),
                  std::move(body_),
                  peer_.text,
                  request_id_};
  exchange_ = std::make_shared<Exchange>(loop_, context_->stats, this, std::exchange(body_charged_, 0));
  dispatched_ns_ = EventLoop::now_ns();
  context_->stats->requests.fetch_add(1, std::memory_order_relaxed);
  // The handler may answer before it returns, and finish_response() then forgets the exchange.
  auto exchange = exchange_;
  const Route& route = *request_->route;
  try {
    route.handler(std::move(request), Responder(exchange));
  } catch (const std::exception& fault) {
    spdlog::error("http: the handler of {} threw at request {}: {}", route.operation_id, request_id_, fault.what());
    if (!exchange->claim()) return;
    exchange->response =
        problem(500, "INTERNAL", "an unexpected error; the log has the details under this request id", Retry::kUnknown);
    exchange->deliver();
    return;
  }
  if (state_ == State::kHandling && context_->draining.load(std::memory_order_relaxed))
    exchange->cancel(CancelReason::kShutdown);
}

void Session::on_end_of_input() {
  input_ended_ = true;
  switch (state_) {
    case State::kHandling:
      exchange_->cancel(CancelReason::kClientGone);
      return;
    case State::kWriting:
      return;  // It may have closed only its own side and wait for the answer.
    default:
      close();
  }
}

void Session::forget_request() {
  head_ = {};
  request_.reset();
  refused_.reset();
  body_ = {};
  context_->stats->body_bytes.fetch_sub(static_cast<int64_t>(std::exchange(body_charged_, 0)),
                                        std::memory_order_relaxed);
  scanned_ = 0;
  blank_line_skipped_ = false;
}

void Session::set_deadline(milliseconds from_now) {
  deadline_ns_ = EventLoop::now_ns() + std::chrono::nanoseconds(from_now).count();
  // A timer that comes early looks again; so moving a deadline back, which every request does, costs nothing.
  if (timer_.second != 0 && timer_.first <= deadline_ns_) return;
  if (timer_.second != 0) loop_->cancel(timer_);
  timer_ = loop_->at(deadline_ns_, [this] { on_timer(); });
}

void Session::on_timer() {
  auto self = shared_from_this();
  timer_ = {0, 0};
  if (deadline_ns_ == INT64_MAX) return;
  if (EventLoop::now_ns() < deadline_ns_) {
    timer_ = loop_->at(deadline_ns_, [this] { on_timer(); });
    return;
  }
  if (state_ != State::kHeader && state_ != State::kBody) return close();
  refuse({408, "REQUEST_TIMEOUT",
          fmt::format("the request had not arrived whole after {} ms", context_->options.request_deadline.count()),
          Rejected::kTimeout, true});
}

}  // namespace millrace::http
