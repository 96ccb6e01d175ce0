#include <unistd.h>

#include <cstdio>
#include <exception>

#include "base/standard_files.h"
#include "cli/command_line.h"
#include "cli/run.h"

namespace {

int run(int argc, const char* const* argv) {
  using namespace millrace::cli;
  auto line = parse_command_line(argc, argv);
  if (!line) return line.error();
  Interrupts interrupts;
  interrupts.watch(STDOUT_FILENO);
  Console console(STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO);
  return millrace::cli::run(*line, console, interrupts);
}

}  // namespace

int main(int argc, char** argv) {
  millrace::fill_standard_files();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "millrace: internal error: %s\n", error.what());
    return millrace::cli::kExitInternal;
  }
}
