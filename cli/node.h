#pragma once

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/remote.h"

namespace millrace::cli {

/// millrace node ... health and ready print what the node says of itself also when it says no (kExitRefused).
Done node(const NodeCommand& command, bool json, Remote& remote, Console& console);

}  // namespace millrace::cli
