#pragma once

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/record_printer.h"
#include "cli/remote.h"

namespace millrace::cli {

/// Consumes as a member of a group: joins, prints what its partitions have behind the committed offsets, commits after
/// printing, and leaves on an interrupt or behind the last record wanted. While the node is away it is asked again
/// within the retry policy; a member that the group no longer knows joins anew.
Done consume_group(const ConsumeCommand& command, Remote& remote, RecordPrinter& printer, Console& console);

}  // namespace millrace::cli
