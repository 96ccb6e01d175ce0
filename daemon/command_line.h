#pragma once

#include <string>
#include <tl/expected.hpp>

#include "config/load.h"

namespace millrace::daemon {

struct CommandLine {
  enum class Task { kRun, kCheckConfig, kPrintConfig };
  Task task = Task::kRun;
  config::Sources sources;
  /// What is missing from a damaged store may stay missing. Never a key: left in a file it would be the rule.
  bool accept_loss = false;
};

/// What is to be done; or the exit code when nothing is left to do, after printing: --help and --version to standard
/// output, what is wrong with the command line to standard error.
tl::expected<CommandLine, int> parse_command_line(int argc, const char* const* argv);

/// "millraced 0.1.0 (revision 1a2b3c, Debug), RocksDB 7.8.3"
std::string version_text();

}  // namespace millrace::daemon
