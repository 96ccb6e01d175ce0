#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/remote.h"

namespace millrace::cli {

/// Records of a topic to standard output.
///
/// Without follow: what lies between the start and the high watermark as it was at the beginning, partition by
/// partition. With follow: the event stream, from an explicit offset of every partition (so that records of the time
/// of a lost connection are not missed even when none was seen before), resumed by the id of the last event printed.
/// An interrupt ends it with kExitInterrupted, a gone reader with kExitOk.
Done consume(const ConsumeCommand& command, bool json, Remote& remote, Console& console);

/// A stretch of one partition: from `next` to before `end`.
struct Stretch {
  uint32_t partition = 0;
  uint64_t next = 0;
  uint64_t end = 0;
};
/// "0:12,1:9", as the stream names its place.
std::string vector_of(const std::vector<Stretch>& stretches);

}  // namespace millrace::cli
