#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace::disruptor {

/// Counts from 1 in order of entry; 0 is the id of what was not accepted.
using ElementId = uint64_t;
inline constexpr ElementId kNotAccepted = 0;

/// What a level says of one element: on to the next level, or out with a code of the consumer's own (never 0).
struct Verdict {
  uint32_t code = 0;

  static Verdict Continue() { return {}; }
  static Verdict Skip(uint32_t code);
};

/// How an element ended.
enum class Fate : uint8_t {
  kCompleted,   ///< passed every level
  kSkipped,     ///< a level said Skip
  kFailed,      ///< a level's consumer threw at it
  kStopped,     ///< was pending when the dispatcher stopped
  kFullSlots,   ///< refused at the entry: every slot is in use
  kFullMemory,  ///< refused at the entry: the memory bound would be passed
  kClosed,      ///< refused at the entry: the dispatcher is stopping
};

std::string_view to_string(Fate fate);
/// The stable code under which users see the fate: "DISPATCHER_FULL", "DISPATCHER_STOPPED", "CONSUMER_FAILED"; empty
/// for what the dispatcher did not decide.
std::string_view error_code(Fate fate);

/// What a completion is told.
struct Outcome {
  static constexpr int32_t kNoLevel = -1;

  ElementId id = kNotAccepted;
  Fate fate = Fate::kCompleted;
  /// The code of kSkipped, else 0.
  uint32_t code = 0;
  /// The level that stopped it: that said Skip, threw, or would have been next at the stop. Else kNoLevel.
  int32_t level = kNoLevel;

  bool accepted() const { return id != kNotAccepted; }
};

/// Thrown at the entry of a full dispatcher that was told to abort, after the completion was called.
class DispatcherFull : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  static constexpr std::string_view kCode = "DISPATCHER_FULL_ABORTED";
};

}  // namespace millrace::disruptor
