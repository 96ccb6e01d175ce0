#pragma once

#include <set>
#include <vector>

#include "bus/log_writer.h"
#include "bus/maintenance.h"
#include "bus/store_view.h"

/// Which parts of the log are to go: topics' retention.ms and retention.bytes, closed segments in which nothing can be
/// reached any more, and those of which most cannot.
namespace millrace::bus {

/// A range that lies in a closed segment more than half of which nobody can reach.
struct Stranded {
  TopicPartition partition;
  SegmentRange range;
};

struct RetentionPlan {
  Maintenance work;
  /// Ranges to be written elsewhere so that their segments become free, segment by segment, the deadest first.
  std::vector<Stranded> stranded;
  std::set<SegmentId> closed, open;
  size_t segments = 0;      ///< closed and open
  uint64_t dead_bytes = 0;  ///< in closed segments, of record batches that nobody can reach
  bool is_empty() const { return work.trims.empty() && work.rolls.empty() && work.removals.empty(); }
};

/// What one pass has to do, with bounds on each list; the next pass finds the rest. Reads the segment rows. Errors:
/// kCorruption, kIo.
///
/// A partition's log loses whole ranges from its start on, as Kafka does by segments: those in closed segments whose
/// newest record is older than retention.ms, by its timestamp or by when its segment was closed, whichever is earlier
/// (a client's timestamp in the future keeps nothing); and those without which it still has retention.bytes. An open
/// segment is closed when it is as old as the shortest retention.ms of what is in it, or as its topic's segment.ms.
Result<RetentionPlan> plan_retention(const StoreView& view, const LogOptions& options, int64_t now_ms);

}  // namespace millrace::bus
