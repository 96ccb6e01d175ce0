#pragma once

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/remote.h"

namespace millrace::cli {

/// Standard input into a topic, batch after batch, one request under way at a time, so order is kept. The idempotency
/// key of the batch with number n is "PREFIX-n"; the cutting into batches depends on the input alone, unless a linger
/// time is set. Ends with the first batch that fails; says then what was acknowledged and what was not.
Done produce(const ProduceCommand& command, bool json, Remote& remote, Console& console);

/// The server takes 16 MB; what is around the records is small.
inline constexpr size_t kMaxRecordBytes = 16 * 1024 * 1024 - 1024;

}  // namespace millrace::cli
