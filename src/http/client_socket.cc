#include "http/client_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace millrace::http {
namespace {

tl::unexpected<Error> invalid_url(std::string_view url, std::string_view why) {
  return fail(
      ErrorKind::kInvalidArgument, "INVALID_URL",
      fmt::format("'{}' is no server address: {}; write http://127.0.0.1:8080 or unix:/path/to/socket", url, why));
}

int poll_one(int fd, short events, std::chrono::milliseconds timeout, short& seen) {
  pollfd entry{fd, events, 0};
  auto until = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    int ready = ::poll(&entry, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    seen = entry.revents;
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

}  // namespace

Result<ServerAddress> ServerAddress::parse(std::string_view url) {
  ServerAddress address;
  address.url = url;
  if (url.starts_with("unix:") || url.starts_with('/')) {
    address.path = url.substr(url.starts_with('/') ? 0 : 5);
    address.host_field = "localhost";
    if (address.path.empty() || address.path.size() >= sizeof sockaddr_un::sun_path)
      return invalid_url(url, "the path of the socket is empty or too long");
    return address;
  }
  std::string_view rest = url;
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  if (rest.find("://") != std::string_view::npos) return invalid_url(url, "only http is spoken");
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find('/') != std::string_view::npos) return invalid_url(url, "it has a path");
  size_t colon = rest.ends_with(']') ? std::string_view::npos : rest.rfind(':');
  std::string_view host = rest.substr(0, colon);
  address.port = 80;
  if (colon != std::string_view::npos) {
    std::string_view port = rest.substr(colon + 1);
    auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (fault != std::errc() || end != port.data() + port.size() || address.port == 0)
      return invalid_url(url, "the port is not a number from 1 to 65535");
  }
  if (host.empty()) return invalid_url(url, "the host is missing");
  address.host_field = rest;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  address.host = host;
  return address;
}

tl::unexpected<Error> ClientSocket::failed(std::string_view why) const {
  return fail(ErrorKind::kUnavailable, "CONNECT_FAILED", fmt::format("cannot connect to {}: {}", address_.url, why));
}

Status ClientSocket::connect_to(int family, const void* address, unsigned size, std::chrono::milliseconds timeout) {
  int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed(std::strerror(errno));
  {
    MutexLock lock(mutex_);
    fd_ = fd;
  }
  if (interrupted()) return fail(ErrorKind::kCancelled, "INTERRUPTED", "the call was interrupted");
  int on = 1;
  if (family != AF_UNIX) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd, static_cast<const sockaddr*>(address), size) == 0) return {};
  if (errno != EINPROGRESS) return failed(std::strerror(errno));
  short seen = 0;
  if (poll_one(fd, POLLOUT, timeout, seen) <= 0) return failed(fmt::format("no answer within {} ms", timeout.count()));
  if (interrupted()) return fail(ErrorKind::kCancelled, "INTERRUPTED", "the call was interrupted");
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return failed(std::strerror(error));
  return {};
}

Status ClientSocket::connect(std::chrono::milliseconds timeout) {
  close();
  if (!address_.path.empty()) {
    sockaddr_un unix_address{};
    unix_address.sun_family = AF_UNIX;
    std::memcpy(unix_address.sun_path, address_.path.data(), address_.path.size());
    auto outcome = connect_to(AF_UNIX, &unix_address, sizeof unix_address, timeout);
    if (!outcome) close();
    return outcome;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (int fault = ::getaddrinfo(address_.host.c_str(), std::to_string(address_.port).c_str(), &hints, &found);
      fault != 0)
    return failed(::gai_strerror(fault));
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  Status outcome = failed("the name has no address");
  for (addrinfo* one = found; one != nullptr; one = one->ai_next) {
    outcome = connect_to(one->ai_family, one->ai_addr, one->ai_addrlen, timeout);
    if (outcome || interrupted()) break;
    close();
  }
  if (!outcome) close();
  return outcome;
}

bool ClientSocket::is_stale() const {
  char byte;
  ssize_t got = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void ClientSocket::close() {
  MutexLock lock(mutex_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void ClientSocket::interrupt() {
  interrupted_.store(true, std::memory_order_release);
  MutexLock lock(mutex_);
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

ClientSocket::Ready ClientSocket::wait(bool for_write, std::chrono::milliseconds timeout) const {
  short seen = 0;
  if (poll_one(fd_, static_cast<short>(POLLIN | (for_write ? POLLOUT : 0)), timeout, seen) <= 0) return Ready::kTimeout;
  // An error shows as both; reading tells what it is.
  return (seen & (POLLIN | POLLERR | POLLHUP)) != 0 ? Ready::kReadable : Ready::kWritable;
}

ssize_t ClientSocket::write(std::string_view head, std::string_view body) const {
  std::array<iovec, 2> parts{iovec{const_cast<char*>(head.data()), head.size()},
                             iovec{const_cast<char*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = head.empty() ? &parts[1] : parts.data();
  message.msg_iovlen = head.empty() ? 1 : 2;
  for (;;) {
    ssize_t put = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) return put;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return -1;
  }
}

ssize_t ClientSocket::read(char* into, size_t size) const {
  for (;;) {
    ssize_t got = ::recv(fd_, into, size, MSG_DONTWAIT);
    if (got >= 0) return got;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return -2;
    if (errno != EINTR) return -1;
  }
}

}  // namespace millrace::http
