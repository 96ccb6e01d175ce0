#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "worker/partition.h"

namespace millrace::worker {

/// One `worker-N` thread and the partitions that it owns. Idle it waits for a command, an answer, a wake-up or the next
/// due time. Owned by the pool and by its own thread: a stuck thread keeps what it uses. The functions below are called
/// by the pool; all but turn_began() are served when the thread comes back to its loop.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  Worker(std::shared_ptr<Context> context, WorkerId id);
  void start();

  WorkerId id() const { return id_; }

  void own(Task task);
  void disown(std::string task);
  /// Ends the thread as soon as it comes back. `release`: gives the leases up.
  void end(bool release);
  /// Looks at clocks and inputs anew: a test's clock was moved.
  void nudge();

  /// Since when it is at one piece of work, steady nanoseconds; 0 while it waits for some.
  int64_t turn_began() const { return turn_began_.load(std::memory_order_acquire); }
  std::string turn_of() const EXCLUDES(turn_mutex_);

  /// After the thread has said that it ended.
  void join() { thread_.join(); }
  void detach() { thread_.detach(); }

 private:
  /// Where everything that comes from other threads goes. Apart, because callbacks of commits outlive the worker.
  struct Inbox;

  void run();
  bool serve();
  void add(Task task);
  void take_turns();
  template <typename Work>
  void at(const std::string& task, Work&& work);

  const std::shared_ptr<Context> context_;
  const WorkerId id_;
  const std::shared_ptr<Inbox> inbox_;
  std::thread thread_;

  // The thread's own.
  std::unordered_map<uint64_t, std::unique_ptr<Partition>> partitions_;
  uint64_t next_token_ = 1;
  bool ends_in_order_ = false;

  std::atomic<int64_t> turn_began_{0};
  mutable Mutex turn_mutex_;
  std::string turn_of_ GUARDED_BY(turn_mutex_);
};

}  // namespace millrace::worker
