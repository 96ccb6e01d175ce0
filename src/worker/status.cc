#include "worker/status.h"

namespace millrace::worker {

std::string_view to_string(PartitionStatus::State state) {
  switch (state) {
    case PartitionStatus::State::kWaiting:
      return "WAITING";
    case PartitionStatus::State::kAcquiring:
      return "ACQUIRING";
    case PartitionStatus::State::kRunning:
      return "RUNNING";
    case PartitionStatus::State::kBackingOff:
      return "BACKING_OFF";
    case PartitionStatus::State::kFull:
      return "FULL";
    case PartitionStatus::State::kStopped:
      break;
  }
  return "STOPPED";
}

std::string_view to_string(WorkerStatus::State state) {
  switch (state) {
    case WorkerStatus::State::kRunning:
      return "RUNNING";
    case WorkerStatus::State::kLeaving:
      return "LEAVING";
    case WorkerStatus::State::kStuck:
      break;
  }
  return "STUCK";
}

}  // namespace millrace::worker
