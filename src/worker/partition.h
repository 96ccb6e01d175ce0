#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/context.h"
#include "worker/parking.h"
#include "worker/step.h"
#include "worker/timers.h"

namespace millrace::worker {

/// A partition as its worker owns it: takes the lease, loads, then steps: gather input, let the domain step, commit,
/// and after the receipt change what is cached. One commit is under way at a time, and nothing here waits for it:
/// answers and wake-ups come through the two functions that the worker passes. Made for one assignment and never used
/// for another, so what it knows is as old as its lease at most. By its worker's thread.
class Partition {
 public:
  struct Callbacks {
    std::function<void(bus::CommitResult)> answered;  ///< any thread; the worker then calls answered() below
    std::function<void()> woken;                      ///< any thread; the worker then calls woken()
  };
  Partition(std::shared_ptr<Context> context, WorkerId worker, Task task, Callbacks callbacks);
  ~Partition();

  const Task& task() const { return task_; }

  /// Does one piece of work; at most one call of the domain's step().
  void turn();
  void answered(bus::CommitResult result);
  void woken() { is_woken_ = true; }

  /// Whether turn() has something to do.
  bool is_runnable() const;
  /// When to look at is_runnable() again although nothing came; nullopt: no need to.
  std::optional<std::chrono::nanoseconds> wait() const;

  /// Gives the lease up, unless a commit is under way; nobody waits for it. At an orderly end.
  void release();

 private:
  enum class Phase {
    kAcquire,     ///< the lease is to be taken
    kAcquiring,   ///< its commit is under way
    kLoad,        ///< the lease is taken
    kRun,         ///< there may be input
    kCommitting,  ///< a step's commit is under way
    kIdle,        ///< there was no input
    kBackOff,     ///< not before resume_at_ns_, then `after_backoff_`
    kStopped,     ///< by a fault that only a change from outside ends
  };

  void acquire();
  void load();
  void run();
  void idle(const bus::View& view);

  Result<bool> plan_retry(const bus::View& view, Plan& plan);
  Result<bool> plan_timers(const bus::View& view, Plan& plan);
  Result<bool> plan_records(const bus::View& view, Plan& plan);
  Result<Fetched> fetch(const bus::View& view, size_t input, size_t max_records, size_t max_bytes);
  enum class Taken { kYes, kAsTheLast, kNotYet, kNoRoom };
  /// Takes one fetched record for the step, or parks it, or gives it up, each into the plan. What is given up goes
  /// alone: the Commit of a dead letter holds no draft, whose size could be taken for its own.
  Taken take(const InputPartition& input, const bus::RecordView& record, Plan& plan);
  void tell_full() const;

  void execute(const bus::View& view, Plan plan);
  std::optional<StepFailure> step(const bus::View& view, Plan& plan);
  void failed(const Plan& plan, StepFailure failure);
  void accept(Plan& plan, const bus::CommitReceipt& receipt);
  void refused(const Plan& plan, const Error& error);
  void drop(const Plan& plan);

  void back_off(Phase then, const Error& error);
  void stop(const Error& error);
  void enter(Phase phase);
  void show(const bus::View* view);
  void fault_point(FaultPoints::Point point);

  const std::shared_ptr<Context> context_;
  const WorkerId worker_;
  const Task task_;
  const bus::Home home_;
  const Callbacks callbacks_;
  StepBuilder builder_;

  Phase phase_ = Phase::kAcquire;
  uint64_t epoch_ = 0;
  std::unique_ptr<PartitionProcessor> instance_;
  std::vector<uint64_t> positions_;  ///< by input: the next offset
  TimerQueue timers_;
  Parking parking_;

  /// Records that failed and are not parked yet, because what parks them is not durable.
  std::map<std::pair<std::string, uint64_t>, StepFailure> failed_records_;
  std::optional<std::pair<bus::Condition, StepFailure>> failed_timer_;  ///< by its row
  std::optional<std::pair<uint64_t, StepFailure>> failed_retry_;        ///< by its number among the parked
  size_t record_limit_, timer_limit_;                                   ///< halved by failures, doubled by steps
  int next_kind_ = 0;
  size_t next_input_ = 0;
  uint32_t conflicts_ = 0;    ///< in a row
  bool omit_values_ = false;  ///< of dead letters: they were too large
  bool is_full_ = false;
  bool timers_wait_ = false;  ///< the first due one is to be parked, for which there is no room

  Plan in_flight_;
  bool is_woken_ = false;
  std::unique_ptr<bus::Watch> watch_;
  Phase after_backoff_ = Phase::kAcquire;
  std::chrono::milliseconds backoff_{0};
  int64_t resume_at_ns_ = 0;
};

}  // namespace millrace::worker
