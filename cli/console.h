#pragma once

#include <string>
#include <string_view>

#include "cli/failure.h"

namespace millrace::cli {

/// The three standard streams, as descriptors. Standard output is buffered (64 KB) and flushed by the caller, at the
/// latest at the end; standard error is not. One thread.
class Console {
 public:
  Console(int input, int output, int error);

  int input() const { return input_; }
  /// A reader that has gone is kExitOk without a text: it has what it wanted. Else kExitLocalIo.
  Done write(std::string_view bytes);
  Done flush();

  /// One line on standard error, with "millrace: " before it.
  void say(std::string_view text);
  /// A line that the next one, or the next progress, replaces. Nothing when standard error is no terminal.
  void progress(std::string_view text);
  bool shows_progress() const { return error_is_terminal_; }

 private:
  void write_error(std::string_view text) const;
  void clear_progress();

  const int input_, output_, error_;
  const bool error_is_terminal_;
  bool progress_shown_ = false;
  std::string buffer_;
};

}  // namespace millrace::cli
