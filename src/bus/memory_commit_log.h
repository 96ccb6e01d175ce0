#pragma once

#include <map>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "bus/commit_log.h"
#include "bus/maintenance.h"
#include "bus/topic.h"
#include "bus/watches.h"

namespace millrace::bus {

/// Commits carried by maps in memory, one at a time under a mutex: for tests of domain code, and the model against
/// which the durable carrier is tested. Plain before fast. Nothing outlives it, and nothing bounds what it holds.
class MemoryCommitLog final : public CommitLog {
 public:
  struct Options {
    size_t max_commit_bytes = 16u << 20;
    size_t max_topics = 10'000;
    size_t max_partitions = 100'000;
    size_t max_idempotency_keys = 1'000'000;
    size_t max_watches = 100'000;
    TopicSettings topic_defaults;
  };
  explicit MemoryCommitLog(const Clock& clock) : MemoryCommitLog(clock, Options{}) {}
  MemoryCommitLog(const Clock& clock, Options options);
  ~MemoryCommitLog() override;

  /// Answers before it returns.
  void submit(Commit commit) override EXCLUDES(mutex_);
  CommitResult submit_and_wait(Commit commit) override EXCLUDES(mutex_);
  std::shared_ptr<const View> view() const override EXCLUDES(mutex_);
  Result<std::unique_ptr<Watch>> watch(std::vector<WatchedOffset> offsets, std::function<void()> wake) override
      EXCLUDES(mutex_);
  uint32_t allocate_partition_ids(uint32_t count) override EXCLUDES(mutex_);
  /// As retention does it.
  void trim(const Trim& trim) EXCLUDES(mutex_);

 private:
  struct State;
  CommitResult apply(const Commit& commit, std::vector<Watches::Moved>& moved) REQUIRES(mutex_);
  Status check(const Commit& commit) const REQUIRES(mutex_);
  Status check_topics(const Commit& commit) const REQUIRES(mutex_);
  void forget_old_idempotency_keys() REQUIRES(mutex_);

  const Clock& clock_;
  const Options options_;
  Watches watches_;
  mutable Mutex mutex_;
  std::unique_ptr<State> state_ GUARDED_BY(mutex_);
  /// The state as last shown; made anew when a view is asked for after a commit.
  mutable std::shared_ptr<const View> view_ GUARDED_BY(mutex_);
  uint32_t next_partition_id_ GUARDED_BY(mutex_) = 1;
};

}  // namespace millrace::bus
