#pragma once

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/remote.h"

namespace millrace::cli {

/// millrace workers ... One request, not repeated.
Done workers(const WorkersCommand& command, bool json, Remote& remote, Console& console);

}  // namespace millrace::cli
