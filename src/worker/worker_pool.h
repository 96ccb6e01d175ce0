#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/heartbeat.h"
#include "bus/topic.h"
#include "worker/worker.h"

namespace millrace::worker {

/// N workers that divide the partitions of all processors among them, each partition held through a lease with an
/// epoch.
///
/// A worker that is stopped, dies or hangs (one piece of work took longer than the step deadline) is replaced by a new
/// one, and its partitions are taken over at once: the new owner raises the epoch, whatever the old one still commits
/// is refused. A thread that hangs in a processor cannot be ended: it is left alone, keeps the objects it uses alive,
/// and ends when it comes back. More than Options::max_stuck of them make the node unhealthy and not ready.
///
/// Owned by the daemon's wiring. Any thread may call anything; nothing but start() and stop() blocks. The log and the
/// clock must outlive the pool, and the stuck threads that stop() reports.
class WorkerPool {
 public:
  /// Starts the workers. Processors whose topics are not there yet wait for them. `faults` is for drills. Errors:
  /// kInvalidArgument DUPLICATE_PROCESSOR.
  static Result<std::unique_ptr<WorkerPool>> start(bus::CommitLog& log, const Clock& clock, Health& health,
                                                   std::vector<std::shared_ptr<const Processor>> processors,
                                                   Options options, FaultPoints* faults = nullptr);
  ~WorkerPool();

  PoolStatus describe() const EXCLUDES(mutex_);
  const WorkerStats& stats() const { return context_->stats; }
  /// Partitions by all processors: records that they have not processed.
  uint64_t lag() const EXCLUDES(mutex_);

  /// The drill: this worker leaves now, a new one takes its place. Errors: kNotFound UNKNOWN_WORKER, kUnavailable
  /// STOPPING.
  Status stop_worker(WorkerId id) EXCLUDES(mutex_);

  /// Errors: kUnavailable WORKERS_STUCK when too many are.
  Status ready() const EXCLUDES(mutex_);

  /// Everybody looks at clocks and topics anew. For tests that move a clock.
  void nudge() EXCLUDES(mutex_);

  /// Ends all workers; they give their leases up. Waits that long for those that are at something, then leaves them.
  /// How many are still there: while that is not 0, log and clock must stay. Once.
  size_t stop(std::chrono::nanoseconds patience) EXCLUDES(mutex_);

 private:
  struct Member {
    std::shared_ptr<Worker> worker;
    WorkerStatus::State state = WorkerStatus::State::kRunning;
  };
  struct OwnedTask {
    Task task;
    std::optional<WorkerId> owner;
  };
  struct Source {
    std::shared_ptr<const Processor> processor;
    std::vector<bus::Topic> inputs;  ///< as last resolved; empty: it does not run
    std::vector<Uuid> dead_letters;  ///< their topics
    std::string problem;
  };

  WorkerPool(std::shared_ptr<Context> context, Health& health,
             std::vector<std::shared_ptr<const Processor>> processors);

  void supervise();
  std::chrono::nanoseconds look_for_hung() EXCLUDES(mutex_);
  void take_ended(const Mailbox::Mail& mail) EXCLUDES(mutex_);
  void resolve() EXCLUDES(mutex_);
  /// The topics of a processor, made if need be; its tasks.
  Result<std::vector<Task>> resolve(const Processor& processor, std::vector<bus::Topic>& inputs);
  bool waits_for_topics() const EXCLUDES(mutex_);

  void replace(WorkerId id, WorkerStatus::State state) REQUIRES(mutex_);
  void add_worker() REQUIRES(mutex_);
  void rebalance() REQUIRES(mutex_);
  size_t stuck() const REQUIRES(mutex_);

  const std::shared_ptr<Context> context_;
  mutable Mutex mutex_;
  std::map<WorkerId, Member> members_ GUARDED_BY(mutex_);
  std::map<std::string, OwnedTask> tasks_ GUARDED_BY(mutex_);
  std::vector<Source> sources_ GUARDED_BY(mutex_);
  WorkerId next_id_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::atomic<bool> ends_{false};
  std::shared_ptr<Heartbeat> heartbeat_;
  std::thread supervisor_;
};

}  // namespace millrace::worker
