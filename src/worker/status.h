#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/mutex.h"
#include "worker/assignment.h"

/// What the workers say of themselves.
namespace millrace::worker {

/// Figures since the start. Any thread reads; each is exact, together they are no snapshot.
struct WorkerStats {
  std::atomic<uint64_t> steps{0};  ///< durable
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> failures{0};  ///< steps that failed, or whose draft was refused
  std::atomic<uint64_t> retries{0};   ///< attempts of what had failed before
  std::atomic<uint64_t> dead_letters{0};
  std::atomic<uint64_t> fenced{0};  ///< late commits that the epoch refused
  std::atomic<uint64_t> timers_fired{0};
  std::atomic<uint64_t> acquired{0};  ///< leases
  std::atomic<uint64_t> gaps{0};      ///< times that retention was quicker than a partition
  std::atomic<uint64_t> records_lost{0};
  std::atomic<uint64_t> hung{0}, died{0}, stopped{0};  ///< workers
  Histogram step_ns;                                   ///< the domain's part
  Histogram timer_lateness_ns;
};

struct PartitionStatus {
  enum class State { kWaiting, kAcquiring, kRunning, kBackingOff, kFull, kStopped };
  struct Input {
    std::string topic;
    uint64_t position = 0;
    uint64_t high_watermark = 0;
  };
  std::string processor;
  uint32_t partition = 0;
  WorkerId worker = 0;
  State state = State::kWaiting;
  uint64_t epoch = 0;
  std::vector<Input> inputs;
  size_t parked = 0;
  uint64_t dead_letters = 0;  ///< by this owner
  std::string problem;        ///< why it does not go on, or what last failed

  uint64_t lag() const {
    uint64_t lag = 0;
    for (const Input& input : inputs) lag += input.high_watermark - std::min(input.position, input.high_watermark);
    return lag;
  }
};
std::string_view to_string(PartitionStatus::State state);

struct WorkerStatus {
  enum class State { kRunning, kLeaving, kStuck };
  WorkerId id = 0;
  State state = State::kRunning;
  std::string step;                         ///< the partition that it is at: "counter/3"; empty while idle
  int64_t step_age_ns = 0;                  ///< how long
  std::vector<PartitionStatus> partitions;  ///< assigned to it
};
std::string_view to_string(WorkerStatus::State state);

struct PoolStatus {
  struct Processor {
    std::string name;
    std::string problem;  ///< why none of its partitions runs; empty: they do
  };
  std::vector<WorkerStatus> workers;  ///< by id
  std::vector<Processor> processors;
};

/// Where a partition's owner writes and describe() reads, so that a hung worker does not keep anybody waiting.
class StatusBoard {
 public:
  template <typename Change>
  void change(Change&& change) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    change(status_);
  }
  PartitionStatus read() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  mutable Mutex mutex_;
  PartitionStatus status_ GUARDED_BY(mutex_);
};

}  // namespace millrace::worker
