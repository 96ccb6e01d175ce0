#pragma once

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/remote.h"

namespace millrace::cli {

/// millrace backup ... create, list and delete ask the node; verify and restore read the backup's files themselves,
/// where no node need run.
Done backup(const BackupCommand& command, bool json, Remote& remote, Console& console);

}  // namespace millrace::cli
