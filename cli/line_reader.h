#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/failure.h"
#include "cli/interrupts.h"

namespace millrace::cli {

/// Lines of a descriptor, with LF cut off; the last one may lack it. Bound: one line, and one read of 64 KB.
class LineReader {
 public:
  enum class Event { kLine, kEnd, kSilence };

  LineReader(int fd, size_t max_line, const Interrupts& interrupts);

  /// The next line is in line(), until the next call. kSilence: nothing came for that long; nullopt waits for ever.
  /// Fails on a line of more than `max_line` bytes (kExitUsage, naming it), when reading fails, when interrupted.
  Outcome<Event> next(std::optional<std::chrono::milliseconds> patience);
  std::string_view line() const { return line_; }
  /// Of line(), from 1 on.
  uint64_t number() const { return number_; }

 private:
  bool take_line();
  Done too_long() const;
  Outcome<Event> finish();

  const int fd_;
  const size_t max_line_;
  const Interrupts& interrupts_;
  std::string buffer_;
  size_t at_ = 0;        ///< what is before was given out
  size_t searched_ = 0;  ///< no LF between at_ and here
  bool ended_ = false;
  std::string_view line_;
  uint64_t number_ = 0;
};

}  // namespace millrace::cli
