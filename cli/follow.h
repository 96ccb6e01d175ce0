#pragma once

#include <vector>

#include "cli/consume.h"
#include "cli/record_printer.h"

namespace millrace::cli {

/// The following half of consume(): the topic's event stream from `start` (every partition) on, each record flushed as
/// it comes. A lost or ended stream is resumed behind the last record printed. Gives up after the policy's number of
/// connections in a row that brought nothing.
Done follow(const ConsumeCommand& command, const std::vector<Stretch>& start, Remote& remote, RecordPrinter& printer);

}  // namespace millrace::cli
