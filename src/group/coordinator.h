#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "bus/commit_log.h"
#include "group/classic_group.h"

namespace millrace::group {

/// An offset as it was committed.
struct CommittedOffset {
  bus::TopicPartition at;
  uint64_t next_offset = 0;
  int32_t leader_epoch = -1;
  Bytes metadata;
  int64_t commit_ms = 0;
};

/// 1 to 255 bytes of UTF-8 without NUL. Errors: kInvalidArgument INVALID_GROUP_ID.
Status check_group_name(std::string_view name);

/// All consumer groups of the node. Their states live here, their rows and offsets in the bus: what a member is
/// told rests on a Commit that is durable, and a commit of offsets carries the generation as a fence, so that none of
/// an older generation can land behind a newer one, whatever the order of threads.
///
/// Thread-safe and never blocks but for reading the store. Answers are called outside any lock, on the caller's thread
/// or the one that carried a Commit. Owned by main; outlives the log's last answer. Bounded by Options.
class Coordinator {
 public:
  struct Options {
    ClassicGroup::Limits limits;
    size_t max_groups = 10'000;
    /// Offsets of a group that was Empty for so long are forgotten, the group with them.
    int64_t offsets_retention_ms = 7ll * 24 * 3600 * 1000;
    /// Called when run_due() should come earlier than it said last; any thread, must not block.
    std::function<void(int64_t due_ms)> wake_at;
  };
  struct Stats {
    std::atomic<uint64_t> rebalances{0};
    std::atomic<uint64_t> offset_commits{0};
    std::atomic<uint64_t> fenced_commits{0};  ///< of an older generation, refused by the log
    std::atomic<uint64_t> expired_groups{0};
  };

  /// Loads the groups. Errors: kCorruption INVALID_GROUP_ROW, those of the store.
  static Result<std::unique_ptr<Coordinator>> start(bus::CommitLog& log, const Clock& clock, Options options);
  ~Coordinator();

  /// Errors: those of ClassicGroup; INVALID_GROUP_ID, kExhausted TOO_MANY_GROUPS.
  void join(const std::string& group, const JoinRequest& request, std::function<void(JoinAnswer)> reply)
      EXCLUDES(mutex_);
  void sync(const std::string& group, const SyncRequest& request, std::function<void(SyncAnswer)> reply)
      EXCLUDES(mutex_);
  Status heartbeat(const std::string& group, const MemberIdentity& who) EXCLUDES(mutex_);
  Status leave(const std::string& group, const MemberIdentity& who) EXCLUDES(mutex_);

  /// Asks all members to join again.
  void rebalance(const std::string& group) EXCLUDES(mutex_);

  /// Offsets of one group; `group` and `commit_ms` are filled in here. With an empty identity only into a group that
  /// is Empty, which may be a new one. Errors: those of ClassicGroup::check_commit and of Commit.
  void commit(const std::string& group, const MemberIdentity& who, std::vector<bus::ConsumedOffset> offsets,
              std::function<void(Status)> reply) EXCLUDES(mutex_);
  /// Forgets offsets of an Empty group.
  void remove_offsets(const std::string& group, std::vector<bus::TopicPartition> partitions,
                      std::function<void(Status)> reply) EXCLUDES(mutex_);
  /// Errors: UNKNOWN_GROUP, GROUP_NOT_EMPTY.
  void remove(const std::string& group, std::function<void(Status)> reply) EXCLUDES(mutex_);

  /// Errors: UNKNOWN_GROUP.
  Result<GroupInfo> describe(const std::string& group) const EXCLUDES(mutex_);
  /// By name, after `after`; without members' data.
  struct Summary {
    std::string name;
    GroupState state;
    std::string protocol_type;
    size_t members;
    int32_t generation;
  };
  std::vector<Summary> list(const std::string& after, size_t limit) const EXCLUDES(mutex_);
  /// The group's state and generation, and one member of it. Errors: UNKNOWN_GROUP, UNKNOWN_MEMBER_ID.
  struct Standing {
    GroupState state;
    int32_t generation;
    std::string protocol;
    bool is_leader;
    MemberInfo member;
  };
  Result<Standing> standing(const std::string& group, const std::string& member) const EXCLUDES(mutex_);

  /// By topic id and partition. Errors: of the store.
  Result<std::vector<CommittedOffset>> offsets(const bus::View& view, const std::string& group) const;
  Result<std::optional<CommittedOffset>> offset(const bus::View& view, const std::string& group,
                                                const bus::TopicPartition& at) const;

  /// A request of a member waits inside the node: the member does not expire while the hold lives. `wake` is called at
  /// most once, when the generation ends or the member goes; at once when it has. Drop it to let go.
  class Hold {
   public:
    virtual ~Hold() = default;
  };
  std::unique_ptr<Hold> hold(const std::string& group, const std::string& member, int32_t generation,
                             std::function<void()> wake) EXCLUDES(mutex_);

  /// Does what is due by the clock, and answers when there will be more (steady milliseconds).
  int64_t run_due() EXCLUDES(mutex_);
  int64_t now_ms() const { return clock_.steady_ns() / 1'000'000; }

  const Stats& stats() const { return stats_; }
  size_t members() const EXCLUDES(mutex_);
  size_t groups() const EXCLUDES(mutex_);

 private:
  struct Entry;
  struct HoldImpl;
  class Outbox;
  struct OffsetCommit;

  Coordinator(bus::CommitLog& log, const Clock& clock, Options options);
  Status load();
  Result<Entry*> obtain(const std::string& group) REQUIRES(mutex_);
  Entry* find(const std::string& group) const REQUIRES(mutex_);
  void settle(Entry& entry, ClassicGroup::Effects& effects, Outbox& out) REQUIRES(mutex_);
  static void add_rows(const Entry& entry, int64_t wall_ms, bus::Commit& commit);
  void start_persist(Entry& entry, Outbox& out) REQUIRES(mutex_);
  void on_persisted(const std::string& group, uint64_t revision, int32_t generation, const Status& status);
  void submit_offsets(std::shared_ptr<OffsetCommit> commit) EXCLUDES(mutex_);
  void on_offsets(const std::shared_ptr<OffsetCommit>& commit, Status status) EXCLUDES(mutex_);
  /// `before_ms`: only if it has been Empty, and no offset of it committed, since then.
  void remove(const std::string& group, std::optional<int64_t> before_ms, std::function<void(Status)> reply)
      EXCLUDES(mutex_);
  void try_delete(Entry& entry, Outbox& out) REQUIRES(mutex_);
  void delete_rows(const std::string& group, uint64_t epoch, std::optional<int64_t> before_ms);
  void on_deleted(const std::string& group, const Status& status);
  void release(const std::string& group, const std::string& member, uint64_t id) EXCLUDES(mutex_);
  void sweep() EXCLUDES(mutex_);
  void sweep_group(const std::string& group, int64_t now_wall_ms) EXCLUDES(mutex_);

  bus::CommitLog& log_;
  const Clock& clock_;
  const Options options_;
  Stats stats_;

  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries_ GUARDED_BY(mutex_);
  /// Deadlines of groups, earliest first.
  std::set<std::pair<int64_t, std::string>> deadlines_ GUARDED_BY(mutex_);
  std::unordered_map<ClassicGroup::Ticket, std::function<void(JoinAnswer)>> joins_ GUARDED_BY(mutex_);
  std::unordered_map<ClassicGroup::Ticket, std::function<void(SyncAnswer)>> syncs_ GUARDED_BY(mutex_);
  uint64_t next_ticket_ GUARDED_BY(mutex_) = 1;
  int64_t told_ms_ GUARDED_BY(mutex_) = INT64_MAX;  ///< when run_due() is expected
  int64_t next_sweep_ms_ GUARDED_BY(mutex_) = 0;
  std::string swept_ GUARDED_BY(mutex_);
};

}  // namespace millrace::group
