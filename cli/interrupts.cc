#include "cli/interrupts.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <system_error>

#include "cli/failure.h"

namespace millrace::cli {
namespace {

int checked(int fd) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "cannot prepare for signals");
  return fd;
}

void ring(int event_fd) {
  uint64_t one = 1;
  // It can only fail when the counter is full, and then it is readable anyway.
  [[maybe_unused]] ssize_t put = ::write(event_fd, &one, sizeof one);
}

bool is_pipe(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

}  // namespace

Interrupts::Interrupts()
    : event_fd_(checked(::eventfd(0, EFD_CLOEXEC))), stop_fd_(checked(::eventfd(0, EFD_CLOEXEC))) {}

Interrupts::~Interrupts() {
  ring(stop_fd_);
  if (thread_.joinable()) thread_.join();
  ::close(event_fd_);
  ::close(stop_fd_);
  if (signal_fd_ >= 0) ::close(signal_fd_);
}

void Interrupts::watch(int output) {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_ = checked(::signalfd(-1, &signals, SFD_CLOEXEC));
  thread_ = std::thread([this, output] { loop(is_pipe(output) ? output : -1); });
}

void Interrupts::loop(int output) {
  std::array<pollfd, 3> watched{pollfd{stop_fd_, POLLIN, 0}, pollfd{signal_fd_, POLLIN, 0}, pollfd{output, 0, 0}};
  for (;;) {
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0) return;
    if (watched[1].revents != 0) {
      signalfd_siginfo info{};
      if (::read(signal_fd_, &info, sizeof info) != sizeof info) continue;
      if (raised() && !reader_gone()) std::_Exit(kExitInterrupted);
      raise();
    }
    if (watched[2].revents != 0) {
      watched[2].fd = -1;
      reader_gone_.store(true, std::memory_order_release);
      raise();
    }
  }
}

void Interrupts::raise() {
  MutexLock lock(mutex_);
  if (raised_.exchange(true, std::memory_order_acq_rel)) return;
  ring(event_fd_);
  if (on_raise_) on_raise_();
}

bool Interrupts::wait_for(std::chrono::milliseconds time) const {
  auto until = std::chrono::steady_clock::now() + time;
  for (;;) {
    pollfd entry{event_fd_, POLLIN, 0};
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    int ready = ::poll(&entry, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

void Interrupts::on_raise(std::function<void()> fn) {
  MutexLock lock(mutex_);
  on_raise_ = std::move(fn);
  if (on_raise_ && raised()) on_raise_();
}

}  // namespace millrace::cli
