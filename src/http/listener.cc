#include "http/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "http/problem.h"
#include "http/response_head.h"

namespace millrace::http {
namespace {

// Accepted in one turn; then the sessions of the loop have theirs.
constexpr int kAcceptsPerTurn = 64;
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{1'000};

UniqueFd open_spare() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

Peer peer_of(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(storage);
    ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    return {fmt::format("{}:{}", text, ntohs(four.sin_port)), text, false};
  }
  if (storage.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(storage);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
    return {fmt::format("[{}]:{}", text, ntohs(six.sin6_port)), text, false};
  }
  return {"unix", "", true};
}

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// Errors of the connection, not of the listener (accept(2)): the next one may be fine.
bool is_of_connection(int error) {
  return error == ECONNABORTED || error == EINTR || error == EPROTO || error == EPERM || error == ENETDOWN ||
         error == ENOPROTOOPT || error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH ||
         error == EOPNOTSUPP || error == ENETUNREACH;
}

}  // namespace

Acceptor::Acceptor(std::shared_ptr<EventLoop> loop, Listening listening, std::shared_ptr<Stats> stats,
                   OnAccept on_accept, AcceptCall accept_call)
    : loop_(std::move(loop)),
      listening_(std::move(listening)),
      stats_(std::move(stats)),
      on_accept_(std::move(on_accept)),
      accept_(accept_call),
      watch_(*loop_, listening_.fd.release()),
      spare_(open_spare()),
      backoff_(kFirstPause) {}

void Acceptor::start() {
  watch_.wait_readable(shared_from_this());
}

void Acceptor::on_readable() {
  if (!watch_.is_open() || paused_) return;
  for (int turn = 0; turn < kAcceptsPerTurn; ++turn)
    if (!accept_one()) break;
  if (!paused_) watch_.wait_readable(shared_from_this());
}

bool Acceptor::accept_one() {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  UniqueFd fd(accept_(watch_.fd(), reinterpret_cast<sockaddr*>(&storage), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.valid()) {
    int on = 1;
    if (storage.ss_family != AF_UNIX) ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    backoff_ = kFirstPause;
    on_accept_(std::move(fd), peer_of(storage));
    return true;
  }
  int error = errno;
  if (error == EAGAIN || error == EWOULDBLOCK) return false;
  if (is_of_connection(error)) return true;
  if (error == EMFILE || error == ENFILE) {
    // accept(2) asks for a descriptor before it looks at its queue: the error does not say that anybody waits.
    TurnedAway turned = turn_one_away();
    if (turned != TurnedAway::kFailed) return turned == TurnedAway::kOne;
  }
  pause(error);
  return false;
}

// The client learns why, and the connection leaves the kernel's queue, which would otherwise wake us for ever.
Acceptor::TurnedAway Acceptor::turn_one_away() {
  if (!spare_.valid()) return TurnedAway::kFailed;
  spare_.reset();
  UniqueFd fd(accept_(watch_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  int error = fd.valid() ? 0 : errno;
  if (fd.valid()) {
    stats_->reject(Rejected::kNoDescriptors);
    Response response = problem(503, "NO_DESCRIPTORS", "the server is out of file descriptors", Retry::kSafe);
    std::string bytes = format_head(response, {.keep_alive = false, .date = loop_->http_date()}) + response.body;
    char unread[4096];
    [[maybe_unused]] auto read = ::recv(fd.get(), unread, sizeof unread, MSG_DONTWAIT);  // else the close is a reset
    [[maybe_unused]] auto sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    fd.reset();
  }
  // When somebody else was quicker to take the descriptor, the next shortage pauses, and resume() tries again.
  spare_ = open_spare();
  if (error == 0 || is_of_connection(error)) return TurnedAway::kOne;
  return error == EAGAIN || error == EWOULDBLOCK ? TurnedAway::kNobodyThere : TurnedAway::kFailed;
}

void Acceptor::pause(int error) {
  paused_ = true;
  stats_->paused_listeners.fetch_add(1, std::memory_order_relaxed);
  stats_->accept_pauses.fetch_add(1, std::memory_order_relaxed);
  if (is_shortage(error))
    spdlog::warn("http: cannot accept on {}: {}; next try in {} ms or when a connection closes", listening_.url,
                 std::strerror(error), backoff_.count());
  else
    spdlog::error("http: accepting on {} failed: {}; next try in {} ms", listening_.url, std::strerror(error),
                  backoff_.count());
  timer_ = loop_->after(backoff_, [this] { resume(); });
  backoff_ = std::min(backoff_ * 2, kLongestPause);
}

void Acceptor::resume() {
  if (!paused_ || !watch_.is_open()) return;
  paused_ = false;
  stats_->paused_listeners.fetch_sub(1, std::memory_order_relaxed);
  loop_->cancel(timer_);
  if (!spare_.valid()) spare_ = open_spare();
  watch_.wait_readable(shared_from_this());
}

void Acceptor::on_fault(std::string_view what) {
  spdlog::error("http: accepting on {} failed: {}", listening_.url, what);
  if (watch_.is_open() && !paused_) pause(ENOMEM);
}

void Acceptor::close() {
  if (!watch_.is_open()) return;
  loop_->cancel(timer_);
  watch_.close();
  remove_socket_file(listening_);
}

}  // namespace millrace::http
