#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/heartbeat.h"
#include "base/histogram.h"
#include "base/mutex.h"
#include "bus/commit_log.h"
#include "bus/log_writer.h"
#include "disruptor/ring.h"

namespace millrace::bus {

class Sequencer;
class StoreView;

/// Figures of the pipeline. Any thread reads; each is exact, together they are no snapshot.
struct CommitStats {
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> refused{0};  ///< answered with an error, whichever
  std::atomic<uint64_t> groups{0};   ///< writes to the store
  std::atomic<uint64_t> bytes{0};    ///< written
  std::atomic<uint64_t> led{0};      ///< groups carried by a caller instead of the commit thread
  std::atomic<int64_t> waiting{0};   ///< commits taken and not yet answered
  std::atomic<int64_t> waiting_bytes{0};
  Histogram write_ns;       ///< a group's write and sync
  Histogram group_commits;  ///< commits in a group
};

/// Commits carried by a store, as the design's section 1.2 says: a multi-producer ring; one leader at a time, which
/// takes a group of published commits and runs three functions over it: *sequence* (decide each, against the store and
/// the group so far; give offsets), *write* (one batch, one sync), *publish* (one new View, wake watches, call `done`
/// in ring order).
///
/// The leader is the `commit` thread; with Options::lead also a caller of submit_and_wait() that finds nobody leading,
/// which spares it two changes of thread.
///
/// A write that fails is indeterminate: its commits and all behind them answer COMMIT_UNKNOWN, later ones STORE_FAILED,
/// and on_fatal is called once; only a restart tells. Bounds: slots and bytes of the ring, bytes of a group.
class CommitPipeline final : public CommitLog {
 public:
  struct Options {
    size_t slot_count = 4096;  ///< a power of two
    uint64_t max_waiting_bytes = 64ull << 20;
    size_t max_commit_bytes = 16u << 20;
    uint64_t max_group_bytes = 4ull << 20;
    size_t max_idempotency_keys = 1'000'000;
    size_t max_watches = 100'000;
    store::Durability durability = store::Durability::kSync;
    bool lead = true;
    LogOptions log;
    std::function<void(Error)> on_fatal;  ///< on the leader's thread; must not block
  };

  /// Recovers what the log's store holds, and starts the commit thread. The store must outlive the pipeline, and
  /// nobody else writes to it meanwhile. Writes nothing by itself. Errors: kCorruption LOG_DAMAGED, kIo.
  static Result<std::unique_ptr<CommitPipeline>> start(store::Store& store, const Clock& clock, Health& health,
                                                       Options options);
  /// close().
  ~CommitPipeline() override;

  void submit(Commit commit) override;
  CommitResult submit_and_wait(Commit commit) override;
  /// As submit_and_wait(), for retention and compaction: the one thread that does both, because each expects segments
  /// as its last operation left them.
  MaintenanceResult maintain(Maintenance work);
  /// view(), as maintenance needs it. Null after close().
  std::shared_ptr<const StoreView> store_view() const EXCLUDES(view_mutex_);
  std::shared_ptr<const View> view() const override EXCLUDES(view_mutex_);
  Result<std::unique_ptr<Watch>> watch(std::vector<WatchedOffset> offsets, std::function<void()> wake) override;
  uint32_t allocate_partition_ids(uint32_t count) override;

  /// Refuses new commits (STOPPING), carries those taken, ends the thread, and writes what spares the next start from
  /// reading segments. view() is null from then on, because a snapshot must not outlive the store. Idempotent. Errors:
  /// STORE_FAILED after failed(), those of the last write; then the next start reads the open segments.
  Status close();

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  const CommitStats& stats() const { return stats_; }
  size_t watches() const { return watches_.count(); }
  const Options& options() const { return options_; }

 private:
  struct MaintenanceWork {
    Maintenance work;
    MaintenanceReceipt receipt;
    std::function<void(Status)> done;
  };
  /// One of the two.
  struct Slot {
    std::optional<Commit> commit;
    std::unique_ptr<MaintenanceWork> maintenance;
    size_t bytes = 0;
  };
  /// Where submit_and_wait() waits.
  class Answer;

  CommitPipeline(store::Store& store, Options options, std::unique_ptr<Sequencer> sequencer);

  /// Claims a slot for so many bytes.
  Result<int64_t> claim(size_t bytes);
  /// Claims and fills a slot. On failure the commit is left as it was.
  Result<int64_t> enqueue(Commit& commit);
  CommitResult sequence(Slot& slot);
  static bool frees_space(const Slot& slot);
  Status check(const Commit& commit) const;

  void run();
  bool try_lead() { return leading_.exchange(1, std::memory_order_acq_rel) == 0; }
  /// A read-modify-write, so that it and the leader's stop_leading() have an order: one of the two sees the other's
  /// work.
  bool is_led() { return leading_.fetch_add(0, std::memory_order_acq_rel) != 0; }
  void stop_leading();
  bool has_work() const { return ring_.is_published(done_.get()); }
  /// Carries one group. False when there was nothing to do. By the leader.
  bool carry_group();
  /// Waits for more commits, at most half as long as the last write took, and a millisecond. By the commit thread.
  void gather();
  Status write_group(store::Purpose purpose);
  void publish(std::vector<CommitResult>& results, std::vector<Watches::Moved> moved);
  void give_up(const Error& error, std::vector<CommitResult>& results);
  void answer_all(std::vector<CommitResult>& results);
  void wake_waiters();
  void show();

  store::Store& store_;
  const Options options_;
  disruptor::Ring<Slot> ring_;
  disruptor::Barrier done_;  ///< everything before it is answered
  std::atomic<uint32_t> leading_{0};
  std::atomic<bool> nudged_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::atomic<uint32_t> next_partition_id_;

  // The leader's.
  std::unique_ptr<Sequencer> sequencer_;
  std::vector<CommitResult> results_;
  std::chrono::steady_clock::duration last_write_{};
  int64_t company_ = 0;           ///< commits of the last group and behind it: how many may come again
  std::vector<Answer*> waiters_;  ///< answered in this group, and not yet woken

  mutable Mutex view_mutex_;
  std::shared_ptr<const StoreView> view_ GUARDED_BY(view_mutex_);
  std::shared_ptr<const store::Snapshot> snapshot_;  ///< of view_; the leader's

  Watches watches_;
  CommitStats stats_;
  std::shared_ptr<Heartbeat> heartbeat_;
  std::thread thread_;
  bool closed_ = false;
};

}  // namespace millrace::bus
