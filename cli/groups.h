#pragma once

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/remote.h"

namespace millrace::cli {

/// millrace groups ... Each is one request, not repeated, save that list asks page by page.
Done groups(const GroupsCommand& command, bool json, Remote& remote, Console& console);

}  // namespace millrace::cli
