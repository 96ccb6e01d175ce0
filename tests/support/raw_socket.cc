#include "tests/support/raw_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace millrace::tests {
namespace {

[[noreturn]] void fail_with_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void wait_for(int fd, short events, const char* what) {
  pollfd entry{fd, events, 0};
  auto patience = std::chrono::milliseconds(RawSocket::kPatience);
  int ready = 0;
  while ((ready = ::poll(&entry, 1, static_cast<int>(patience.count()))) < 0 && errno == EINTR) continue;
  if (ready == 0) throw std::runtime_error(std::string("nothing happened while waiting to ") + what);
}

}  // namespace

RawSocket RawSocket::tcp(uint16_t port, const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail_with_errno("socket");
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    int error = errno;
    ::close(fd);
    errno = error;
    fail_with_errno("connect to port " + std::to_string(port));
  }
  return RawSocket(fd);
}

RawSocket RawSocket::unix_socket(const std::filesystem::path& path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::strncpy(to.sun_path, path.c_str(), sizeof to.sun_path - 1);
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail_with_errno("socket");
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    int error = errno;
    ::close(fd);
    errno = error;
    fail_with_errno("connect to " + path.string());
  }
  return RawSocket(fd);
}

RawSocket::~RawSocket() {
  close();
}

RawSocket::RawSocket(RawSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)), reset_(other.reset_) {}

bool RawSocket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put > 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return false;
    wait_for(fd_, POLLOUT, "send");
  }
  return true;
}

size_t RawSocket::send_some(std::string_view bytes) {
  ssize_t put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return put > 0 ? static_cast<size_t>(put) : 0;
}

void RawSocket::shutdown_write() {
  ::shutdown(fd_, SHUT_WR);
}

void RawSocket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void RawSocket::abort() {
  linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

bool RawSocket::fill() {
  char bytes[16384];
  for (;;) {
    wait_for(fd_, POLLIN, "read");
    ssize_t got = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) {
      buffer_.append(bytes, static_cast<size_t>(got));
      return true;
    }
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) reset_ = true;
    return false;
  }
}

std::string RawSocket::read_until(std::string_view marker) {
  for (;;) {
    if (size_t at = buffer_.find(marker); at != std::string::npos) {
      std::string out = buffer_.substr(0, at + marker.size());
      buffer_.erase(0, out.size());
      return out;
    }
    if (!fill()) return std::exchange(buffer_, {});
  }
}

std::string RawSocket::read_all() {
  while (fill()) continue;
  return std::exchange(buffer_, {});
}

std::optional<RawSocket::Answer> RawSocket::read_answer(bool head_only) {
  Answer answer;
  answer.head = read_until("\r\n\r\n");
  if (!answer.head.ends_with("\r\n\r\n")) return std::nullopt;
  answer.head.resize(answer.head.size() - 4);
  answer.status = std::atoi(answer.head.c_str() + std::strlen("HTTP/1.1 "));
  if (head_only || answer.status / 100 == 1 || answer.status == 204) return answer;
  if (answer.field("Transfer-Encoding") == "chunked") {
    answer.body = read_until("0\r\n\r\n");
    return answer;
  }
  size_t length = std::strtoull(answer.field("Content-Length").c_str(), nullptr, 10);
  while (buffer_.size() < length && fill()) continue;
  answer.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return answer;
}

std::string RawSocket::Answer::field(std::string_view name) const {
  for (size_t at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at + 2)) {
    std::string_view line = std::string_view(head).substr(at + 2);
    line = line.substr(0, line.find("\r\n"));
    size_t colon = line.find(':');
    if (colon == name.size() && ::strncasecmp(line.data(), name.data(), colon) == 0)
      return std::string(line.substr(line.find_first_not_of(' ', colon + 1)));
  }
  return {};
}

}  // namespace millrace::tests
