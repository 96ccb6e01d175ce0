#include "bench/http/fixed_answer.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace millrace::bench {
namespace {

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) std::abort();
}

}  // namespace

FixedAnswer::FixedAnswer(std::string answer) : answer_(std::move(answer)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* place = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, place, size) != 0 || ::listen(listener_, 128) != 0) std::abort();
  if (::getsockname(listener_, place, &size) != 0) std::abort();
  port_ = ntohs(address.sin_port);
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  watch(epoll_, listener_);
  watch(epoll_, stop_);
  thread_ = std::thread([this] { run(); });
}

FixedAnswer::~FixedAnswer() {
  uint64_t one = 1;
  if (::write(stop_, &one, sizeof one) != sizeof one) std::abort();
  thread_.join();
  for (int fd : {listener_, epoll_, stop_}) ::close(fd);
}

double FixedAnswer::cpu_seconds() const {
  clockid_t clock{};
  timespec time{};
  if (::pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) != 0) std::abort();
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Connections that are open at the end are left to the kernel: the process is about to end, or a few are lost.
void FixedAnswer::run() {
  std::array<epoll_event, 64> events;
  std::array<char, 16384> buffer;
  for (;;) {
    int count = ::epoll_wait(epoll_, events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == stop_) return;
      if (fd == listener_) {
        int accepted = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        int on = 1;
        ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(epoll_, accepted);
      } else if (::read(fd, buffer.data(), buffer.size()) <= 0 ||
                 ::write(fd, answer_.data(), answer_.size()) != static_cast<ssize_t>(answer_.size())) {
        ::close(fd);
      }
    }
  }
}

}  // namespace millrace::bench
