#include "disruptor/outcome.h"

#include "base/result.h"

namespace millrace::disruptor {

Verdict Verdict::Skip(uint32_t code) {
  MILLRACE_ASSERT(code != 0, "a skip needs a code other than 0");
  return {code};
}

std::string_view to_string(Fate fate) {
  switch (fate) {
    case Fate::kCompleted:
      return "completed";
    case Fate::kSkipped:
      return "skipped";
    case Fate::kFailed:
      return "failed";
    case Fate::kStopped:
      return "stopped";
    case Fate::kFullSlots:
      return "full (slots)";
    case Fate::kFullMemory:
      return "full (memory)";
    case Fate::kClosed:
      return "closed";
  }
  return "unknown";
}

std::string_view error_code(Fate fate) {
  switch (fate) {
    case Fate::kFailed:
      return "CONSUMER_FAILED";
    case Fate::kFullSlots:
    case Fate::kFullMemory:
      return "DISPATCHER_FULL";
    case Fate::kStopped:
    case Fate::kClosed:
      return "DISPATCHER_STOPPED";
    case Fate::kCompleted:
    case Fate::kSkipped:
      break;
  }
  return {};
}

}  // namespace millrace::disruptor
