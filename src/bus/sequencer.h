#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "bus/commit.h"
#include "bus/idempotency.h"
#include "bus/log_writer.h"
#include "bus/store_view.h"

namespace millrace::bus {

/// The first function of the commit pipeline: decides of each commit of a group, in order, whether it holds against
/// everything before it, durable or in this very group, and adds what it writes to one WriteBatch. Reads the store,
/// writes nothing. By the pipeline's leader only.
class Sequencer {
 public:
  Sequencer(const store::Store& store, LogState state, IdempotencyKeys idempotency, const Clock& clock,
            LogOptions options);

  /// Starts a group over what the store holds now; `snapshot` shows exactly that.
  void begin_group(std::shared_ptr<const store::Snapshot> snapshot);
  /// The commit has passed check_commit and check_batch. Moves batches out of it. What it answers becomes true when the
  /// group is written.
  CommitResult sequence(Commit& commit);
  /// Moves batches out of it, too.
  MaintenanceResult maintain(Maintenance& work);
  /// The group is complete: its rows, to be written at once. Empty when nothing was accepted and nothing is to be
  /// erased.
  store::WriteBatch& finish_group();

  /// The group is written: the sequencer goes on from it.
  std::vector<Watches::Moved> accept();
  /// The group is not written: as if it had never been.
  void drop();

  const LogState& log() const { return state_; }
  uint64_t group_bytes() const { return batch_.bytes() + writer_.pending_bytes(); }
  bool has_garbage() const { return !state_.garbage.empty(); }

 private:
  /// A full cache is emptied: its rows are read again.
  static constexpr size_t kMaxCachedEpochs = 65'536;

  struct Overlaid {
    std::optional<Bytes> payload;  ///< nullopt: deleted
    Version version = kAbsent;
  };
  /// What a commit's own rows of table topics do.
  struct TopicChanges {
    std::vector<Topic> coming;
    std::vector<std::shared_ptr<const Topic>> going;  ///< also those that a row with another id replaces
  };

  Result<std::optional<Row>> read(store::Table table, const Bytes& key) const;
  Result<uint64_t> epoch_of(const Bytes& lease);
  Status check_fences(const Commit& commit);
  Status check_conditions(const Commit& commit) const;
  Result<TopicChanges> topic_changes(const Commit& commit) const;
  Status check_appends(const Commit& commit, const TopicChanges& changes) const;
  CommitReceipt apply(Commit& commit, const TopicChanges& changes);
  void write(store::Table table, const Bytes& key, const std::optional<Bytes>& payload, Version version);

  const store::Store& store_;
  LogState state_;
  LogWriter writer_;
  IdempotencyKeys idempotency_;
  const TopicSettings topic_defaults_;

  std::shared_ptr<const store::Snapshot> snapshot_;
  store::WriteBatch batch_;
  bool has_written_ = false;  ///< something since the start
  /// Rows that this group writes, by table and key.
  std::unordered_map<Bytes, Overlaid> overlay_;
  /// Epochs of leases as of the snapshot: a lease's owner commits again and again under it.
  std::unordered_map<Bytes, uint64_t> epochs_;
};

}  // namespace millrace::bus
