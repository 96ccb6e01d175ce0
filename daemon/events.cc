#include "daemon/events.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <limits>
#include <system_error>

namespace millrace::daemon {
namespace {

int checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return fd;
}

sigset_t handled() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

Events::Events() {
  sigset_t set = handled();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // A client that hangs up is an error of its write, not a reason to die.
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = checked(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
  wakeups_ = checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
}

Events::~Events() {
  ::close(signals_);
  ::close(wakeups_);
}

Events::Event Events::wait(std::optional<std::chrono::milliseconds> timeout) {
  std::array<pollfd, 2> fds = {{{signals_, POLLIN, 0}, {wakeups_, POLLIN, 0}}};
  int64_t ms = timeout ? std::clamp<int64_t>(timeout->count(), 0, std::numeric_limits<int>::max()) : -1;
  // EINTR comes from a debugger or SIGCONT; ending the wait early is no harm, callers look at the clock themselves.
  if (::poll(fds.data(), fds.size(), static_cast<int>(ms)) <= 0) return {};
  signalfd_siginfo info{};
  if (fds[0].revents != 0 && ::read(signals_, &info, sizeof info) == sizeof info)
    return {Event::Kind::kSignal, static_cast<int>(info.ssi_signo)};
  uint64_t count = 0;
  if (::read(wakeups_, &count, sizeof count) == sizeof count) return {Event::Kind::kWoken, 0};
  return {};
}

void Events::wake() noexcept {
  uint64_t one = 1;
  // Fails only when the counter is full, and then a wake-up is pending anyway.
  [[maybe_unused]] ssize_t written = ::write(wakeups_, &one, sizeof one);
}

void die_by(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::raise(signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::_exit(128 + signal);
}

}  // namespace millrace::daemon
