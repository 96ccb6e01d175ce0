#include "cli/line_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace millrace::cli {
namespace {

constexpr size_t kReadBytes = 64 * 1024;

}  // namespace

LineReader::LineReader(int fd, size_t max_line, const Interrupts& interrupts)
    : fd_(fd), max_line_(max_line), interrupts_(interrupts) {}

bool LineReader::take_line() {
  size_t end = buffer_.find('\n', searched_);
  searched_ = buffer_.size();
  if (end == std::string::npos) return false;
  line_ = std::string_view(buffer_).substr(at_, end - at_);
  at_ = searched_ = end + 1;
  ++number_;
  return true;
}

Done LineReader::too_long() const {
  return fails(kExitUsage, fmt::format("line {} of the input has more than {} bytes", number_, max_line_));
}

Outcome<LineReader::Event> LineReader::finish() {
  ended_ = true;
  if (at_ == buffer_.size()) return Event::kEnd;
  line_ = std::string_view(buffer_).substr(at_);
  at_ = searched_ = buffer_.size();
  ++number_;
  return Event::kLine;
}

Outcome<LineReader::Event> LineReader::next(std::optional<std::chrono::milliseconds> patience) {
  for (;;) {
    if (interrupts_.raised()) return fails(kExitInterrupted);
    bool taken = take_line();
    size_t size = taken ? line_.size() : buffer_.size() - at_;
    if (size > max_line_) {
      if (!taken) ++number_;
      return tl::unexpected(too_long().error());
    }
    if (taken) return Event::kLine;
    if (ended_) return Event::kEnd;
    buffer_.erase(0, at_);
    searched_ -= at_;
    at_ = 0;

    std::array<pollfd, 2> watched{pollfd{fd_, POLLIN, 0}, pollfd{interrupts_.fd(), POLLIN, 0}};
    int ready = ::poll(watched.data(), watched.size(), patience ? static_cast<int>(patience->count()) : -1);
    if (ready == 0) return Event::kSilence;
    if (ready < 0 || watched[0].revents == 0) continue;
    size_t before = buffer_.size();
    buffer_.resize(before + kReadBytes);
    ssize_t got = ::read(fd_, buffer_.data() + before, kReadBytes);
    int fault = errno;
    buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return finish();
    if (got < 0 && fault != EINTR && fault != EAGAIN)
      return fails(kExitLocalIo, fmt::format("cannot read standard input: {}", std::strerror(fault)));
  }
}

}  // namespace millrace::cli
