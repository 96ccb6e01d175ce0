#include "cli/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace millrace::cli {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;

// False with errno when the stream does not take it all.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
    } else if (errno == EAGAIN) {
      // Somebody who shares the terminal has made it non-blocking.
      pollfd entry{fd, POLLOUT, 0};
      ::poll(&entry, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

Console::Console(int input, int output, int error)
    : input_(input), output_(output), error_(error), error_is_terminal_(::isatty(error) == 1) {}

Done Console::write(std::string_view bytes) {
  buffer_.append(bytes);
  return buffer_.size() < kBufferBytes ? Done() : flush();
}

Done Console::flush() {
  bool written = write_all(output_, buffer_);
  int fault = errno;
  buffer_.clear();
  if (written) return {};
  if (fault == EPIPE) return fails(kExitOk);
  return fails(kExitLocalIo, fmt::format("cannot write to standard output: {}", std::strerror(fault)));
}

void Console::write_error(std::string_view text) const {
  write_all(error_, text);
}

void Console::clear_progress() {
  if (progress_shown_) write_error("\r\x1b[K");
  progress_shown_ = false;
}

void Console::say(std::string_view text) {
  clear_progress();
  write_error(fmt::format("millrace: {}\n", text));
}

void Console::progress(std::string_view text) {
  if (!error_is_terminal_) return;
  clear_progress();
  write_error(text);
  progress_shown_ = true;
}

}  // namespace millrace::cli
