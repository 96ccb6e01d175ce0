#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/heartbeat.h"
#include "base/mutex.h"
#include "bus/commit_pipeline.h"
#include "bus/compaction.h"
#include "bus/retention.h"

namespace millrace::bus {

/// Figures of the keeper. Any thread reads.
struct KeeperStats {
  std::atomic<uint64_t> passes{0};
  std::atomic<uint64_t> trims{0};  ///< times that a partition's log lost its head
  std::atomic<uint64_t> removed_segments{0};
  std::atomic<uint64_t> moved_bytes{0};      ///< written again so that segments become free
  std::atomic<uint64_t> cleaned_bytes{0};    ///< read by compaction
  std::atomic<uint64_t> compacted_bytes{0};  ///< of them, not written again
  std::atomic<uint64_t> scrubbed_bytes{0};
  std::atomic<uint64_t> scrub_rounds{0};  ///< times that everything has been read
  std::atomic<uint64_t> damages{0};       ///< places found damaged
  std::atomic<uint64_t> segments{0};
  std::atomic<uint64_t> dead_bytes{0};  ///< in closed segments, not reachable
};

/// Keeps the log in order, on the thread `log-keeper`: retention, segments that are mostly dead, compaction, and
/// reading everything once in a while so that damage is found before the data is needed (scrub). Owned by main; stop()
/// before the pipeline is closed.
///
/// Bounds: `io_bytes_per_second` for what is read and written, chunks of kChunkBytes so that appends wait for none of
/// it, `compaction_memory_bytes`. A damaged place is told once (log, damages()) and left alone.
class LogKeeper {
 public:
  struct Options {
    std::chrono::milliseconds interval = std::chrono::seconds(10);  ///< between passes
    uint64_t io_bytes_per_second = 32ull << 20;                     ///< 0: no bound
    uint64_t scrub_bytes_per_second = 4ull << 20;
    std::chrono::milliseconds scrub_interval =
        std::chrono::hours(7 * 24);  ///< between the starts of two rounds; 0: none
    uint64_t compaction_memory_bytes = 16ull << 20;
  };

  LogKeeper(CommitPipeline& log, store::Store& store, const Clock& clock, Options options);
  /// stop().
  ~LogKeeper();

  /// Starts the thread. Without it, run_once() does the work.
  void start(Health& health);
  void stop() EXCLUDES(mutex_);

  /// One pass: retention until it finds no more, stranded ranges, compaction. Not beside the thread. Errors: those of
  /// the pipeline; damage is no error here.
  Status run_once();
  /// Reads everything once. Not beside the thread. Errors as run_once().
  Status scrub_once();

  const KeeperStats& stats() const { return stats_; }
  /// Places found damaged since the start, oldest first, at most kMaxDamages.
  std::vector<std::string> damages() const EXCLUDES(mutex_);
  static constexpr size_t kMaxDamages = 100;

 private:
  static constexpr size_t kChunkBytes = 256 << 10;
  /// Ranges that are moved at once: each is looked for among all of its segment's.
  static constexpr size_t kMaxHeads = 64;

  /// A partition of a compacted topic, and what its topic says of compaction.
  struct Dirty {
    TopicPartition partition;
    uint32_t id = 0;
    LogClass log_class = 0;
    int64_t delete_retention_ms = 0;
    uint64_t from = 0;  ///< nothing is dirty before it
    uint64_t to = 0;    ///< the end of what is closed
  };
  struct Target {
    SegmentId segment;
    uint64_t bytes = 0;
  };
  /// Where a scrub has got to.
  struct ScrubPlace {
    TopicPartition partition;
    uint64_t offset = 0;
    bool logs_done = false;
    size_t table = 0;  ///< after the logs: the other tables
    Bytes key;
    uint64_t bytes = 0;  ///< read and not yet accounted for
  };

  void run();
  Status retain();
  Status move_stranded();
  Status compact();
  void drop_files();

  using StrandedAt = std::vector<Stranded>::const_iterator;
  struct Head {
    Replace replace;
    LogClass log_class = 0;  ///< of the partition's topic
    bool whole = true;       ///< nothing of the range is left
  };
  /// Moves heads of ranges of one segment, about kChunkBytes, to another segment. Answers where to go on.
  Result<StrandedAt> move_heads(StrandedAt at, StrandedAt end);
  /// nullopt when the range is gone.
  Result<std::optional<Head>> read_head(const Stranded& stranded);

  /// As retention last saw them; a segment that is closed stays so.
  bool is_closed(const SegmentRange& range) const { return closed_.contains({range.log_class, range.segment}); }
  std::vector<Dirty> find_dirty(const StoreView& view) const;
  Status clean(const Dirty& dirty);
  /// Fills `last` from offset `from` on. Answers up to where there was room, at most to `to`.
  Result<uint64_t> read_keys(const Dirty& dirty, uint64_t from, uint64_t to, LastOffsets& last);
  /// The range of the partition that begins at `offset` or holds it, if it lies in a closed segment.
  std::optional<SegmentRange> closed_range_at(const Dirty& dirty, uint64_t offset) const;
  Result<bool> needs_cleaning(const Dirty& dirty, const SegmentRange& range, uint64_t to, BatchCleaner& cleaner);
  /// Answers the offset behind it; nullopt when the log has changed.
  Result<std::optional<uint64_t>> clean_head(const Dirty& dirty, const SegmentRange& range, uint64_t to,
                                             BatchCleaner& cleaner);

  /// Whole batches of one closed range from `offset` up to `end`, about `max_bytes`; empty when the log has changed.
  Result<std::vector<Bytes>> read_chunk(const TopicPartition& partition, uint64_t offset, uint64_t end,
                                        size_t max_bytes = kChunkBytes);
  /// Work's `replaces`, of the class. Answers the bytes of the segments' rows; nullopt when the log has changed.
  Result<std::optional<uint64_t>> replace(Maintenance work, LogClass log_class);

  Result<bool> scrub_some(ScrubPlace& place);
  Result<bool> scrub_log(ScrubPlace& place, const StoreView& view);
  Result<bool> scrub_table(ScrubPlace& place, const StoreView& view);

  /// After `bytes` of work: waits as long as the bound says. Errors: STOPPING.
  Status spend(uint64_t bytes, uint64_t per_second) EXCLUDES(mutex_);
  /// As spend(), of what a pass may read and write; retention does not wait for the end of a pass that takes long.
  Status spend_in_pass(uint64_t bytes) EXCLUDES(mutex_);
  void note_horizon(uint32_t partition_id, int64_t horizon_ms);
  /// True for damage, which is noted and passed over.
  bool note_damage(const Error& error) EXCLUDES(mutex_);

  CommitPipeline& log_;
  store::Store& store_;
  const Clock& clock_;
  const Options options_;
  KeeperStats stats_;

  // The keeper's thread only.
  std::set<SegmentId> closed_, open_;   ///< as retention last saw them
  std::map<LogClass, Target> targets_;  ///< of this pass
  int64_t next_retention_ns_ = 0;
  std::unordered_map<uint32_t, int64_t> horizons_;  ///< by partition id: when its first tombstone may go
  std::set<TopicPartition> given_up_;               ///< damaged: not compacted any more
  struct Drop {
    SegmentId segment;
    uint64_t sequence;  ///< of the store when it was removed: older snapshots may still read it
  };
  std::vector<Drop> drops_;

  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool nudged_ GUARDED_BY(mutex_) = false;
  std::vector<std::string> damages_ GUARDED_BY(mutex_);
  std::shared_ptr<Heartbeat> heartbeat_;
  std::thread thread_;
};

}  // namespace millrace::bus
