#pragma once

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/interrupts.h"

namespace millrace::cli {

/// Carries a command out, prints its failure, and says what the process ends with.
int run(const CommandLine& line, Console& console, Interrupts& interrupts);

}  // namespace millrace::cli
