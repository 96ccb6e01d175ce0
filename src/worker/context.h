#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "bus/commit_log.h"
#include "worker/faults.h"
#include "worker/input.h"
#include "worker/processor.h"
#include "worker/status.h"

namespace millrace::worker {

/// Bounds. The configuration's section [worker] says what each is for.
struct Options {
  uint32_t threads = 4;
  std::chrono::nanoseconds step_deadline = std::chrono::seconds(30);
  uint32_t max_stuck = 2;
  size_t batch_records = 500;
  size_t batch_bytes = 1u << 20;
  size_t timers_per_step = 100;
  size_t max_commit_bytes = 16u << 20;
  uint32_t max_attempts = 8;
  std::chrono::milliseconds backoff_min{200};
  std::chrono::milliseconds backoff_max{5 * 60'000};
  size_t max_parked = 1'000;
  size_t max_parked_bytes = 16u << 20;
};

/// What one worker is given to own.
struct Task {
  std::shared_ptr<const Processor> processor;
  uint32_t partition = 0;
  std::vector<InputPartition> inputs;
  std::shared_ptr<StatusBoard> board;

  std::string name() const;
};

/// What a worker tells the pool's supervisor. Outlives the pool, because a stuck worker may.
class Mailbox {
 public:
  void worker_ended(WorkerId worker, bool in_order) EXCLUDES(mutex_);
  /// A topic may be gone: resolve all of them anew.
  void look_at_topics() EXCLUDES(mutex_);
  void nudge() EXCLUDES(mutex_);

  struct Mail {
    std::vector<std::pair<WorkerId, bool>> ended;
    bool look_at_topics = false;
  };
  /// What came since the last call; waits at most so long for it.
  Mail take(std::chrono::nanoseconds wait) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  CondVar changed_;
  Mail mail_ GUARDED_BY(mutex_);
  bool nudged_ GUARDED_BY(mutex_) = false;
};

/// What all workers of a pool share. A stuck worker keeps it alive; the log and the clock must outlive the last of
/// them.
struct Context {
  Context(bus::CommitLog& l, const Clock& c, Options o, FaultPoints* f) : log(l), clock(c), options(o), faults(f) {}

  bus::CommitLog& log;
  const Clock& clock;
  const Options options;
  FaultPoints* const faults;  ///< null in the product
  WorkerStats stats;
  Mailbox mailbox;
};

}  // namespace millrace::worker
