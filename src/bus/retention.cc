#include "bus/retention.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "proto/bus.pb.h"

namespace millrace::bus {
namespace {

constexpr size_t kMaxTrims = 10'000;
constexpr size_t kMaxRemovals = 64;
constexpr size_t kMaxStranded = 1'000;
/// A shorter retention.ms makes no shorter segments than this.
constexpr int64_t kMinSegmentMs = 1'000;

/// The open segment of a compacted topic is closed for compaction when it has so much, and as much as the others.
constexpr uint64_t kMinDirtyBytes = 4 << 20;

struct Segment {
  bool open = false;
  int64_t created_ms = 0;
  int64_t closed_ms = 0;
  uint64_t bytes = 0;

  // Of the ranges that stay.
  uint64_t live_bytes = 0;
  size_t live_ranges = 0;
  int64_t roll_after_ms = 0;
};

class Planner {
 public:
  Planner(const StoreView& view, const LogOptions& options, int64_t now_ms)
      : view_(view), options_(options), now_ms_(now_ms) {}

  Result<RetentionPlan> run() {
    MILLRACE_TRY(read_segments());
    for (const auto& [id, topic] : view_.topics())
      for (uint32_t number = 0; number < topic->partitions(); ++number)
        if (const PartitionLog* log = view_.partitions().find(topic->partition_ids[number]))
          look_at(*topic, {id, number}, *log);
    for (const auto& [id, segment] : segments_) look_at(id, segment);
    find_stranded();
    plan_.segments = segments_.size();
    return std::move(plan_);
  }

 private:
  Status read_segments();
  void look_at(const Topic& topic, const TopicPartition& partition, const PartitionLog& log);
  uint64_t start_of(const Topic& topic, const PartitionLog& log) const;
  bool expired(const Topic& topic, const SegmentRange& range) const;
  void look_at(const SegmentId& id, const Segment& segment);
  bool compaction_waits_for(const SegmentId& id, const Segment& segment) const;
  bool is_stranded(const Segment& segment) const;
  void find_stranded();

  const StoreView& view_;
  const LogOptions& options_;
  const int64_t now_ms_;
  std::map<SegmentId, Segment> segments_;
  RetentionPlan plan_;
};

Status Planner::read_segments() {
  auto rows = view_.snapshot().scan(store::Table::kMeta, kSegmentRowPrefix, prefix_end(kSegmentRowPrefix));
  for (rows->seek_to_first(); rows->valid(); rows->next()) {
    proto::SegmentRow row;
    const ByteView value = rows->value();
    if (rows->key().size() != kSegmentRowPrefix.size() + 8 ||
        !row.ParseFromArray(value.data(), static_cast<int>(value.size())))
      return fail(ErrorKind::kCorruption, "LOG_DAMAGED",
                  fmt::format("segment row {} of meta cannot be read", to_hex(rows->key())));
    const char* numbers = rows->key().data() + kSegmentRowPrefix.size();
    Segment& segment = segments_[{load_be<uint32_t>(numbers), load_be<uint32_t>(numbers + 4)}];
    segment.open = row.open();
    segment.roll_after_ms = options_.segment_ms;
    segment.created_ms = row.created_ms();
    segment.closed_ms = row.closed_ms();
    uint64_t listed = 0;
    for (const auto& range : row.ranges()) listed += range.bytes();
    segment.bytes = std::max(row.bytes(), listed);
  }
  return rows->status();
}

bool Planner::expired(const Topic& topic, const SegmentRange& range) const {
  auto segment = segments_.find({range.log_class, range.segment});
  if (segment == segments_.end() || segment->second.open) return false;
  const int64_t newest = std::min(range.max_timestamp_ms, segment->second.closed_ms);
  return now_ms_ - newest > topic.settings.retention_ms;
}

uint64_t Planner::start_of(const Topic& topic, const PartitionLog& log) const {
  uint64_t start = log.log_start, bytes = log.bytes;
  if (!topic.settings.cleanup_delete) return start;
  const bool by_time = topic.settings.retention_ms != kUnlimited,
             by_size = topic.settings.retention_bytes != kUnlimited;
  for (size_t i = 0; i < log.ranges(); ++i) {
    const SegmentRange& range = log.range(i);
    auto segment = segments_.find({range.log_class, range.segment});
    if (segment == segments_.end() || segment->second.open) break;
    const bool too_many =
        by_size && bytes - range.bytes >= static_cast<uint64_t>(std::max<int64_t>(topic.settings.retention_bytes, 0));
    if (!too_many && !(by_time && expired(topic, range))) break;
    start = range.next_offset;
    bytes -= range.bytes;
  }
  return start;
}

void Planner::look_at(const Topic& topic, const TopicPartition& partition, const PartitionLog& log) {
  uint64_t start = start_of(topic, log);
  if (start > log.log_start) {
    if (plan_.work.trims.size() < kMaxTrims)
      plan_.work.trims.push_back({partition, start});
    else
      start = log.log_start;
  }
  for (size_t i = 0; i < log.ranges(); ++i) {
    const SegmentRange& range = log.range(i);
    if (range.next_offset <= start) continue;
    auto segment = segments_.find({range.log_class, range.segment});
    if (segment == segments_.end()) continue;
    segment->second.live_bytes += range.bytes;
    ++segment->second.live_ranges;
    if (!segment->second.open) continue;
    const bool own = (range.log_class & (kOwnClass | kCompactedClass)) != 0;
    int64_t roll_after = own ? topic.settings.segment_ms : options_.segment_ms;
    if (own) segment->second.roll_after_ms = roll_after;
    // It was written before the topic was compacted, and compaction waits for it.
    if (topic.settings.cleanup_compact && range.log_class != log_class_of(topic)) roll_after = 0;
    if (topic.settings.cleanup_delete && topic.settings.retention_ms != kUnlimited)
      roll_after = std::min(roll_after, std::max(topic.settings.retention_ms, kMinSegmentMs));
    segment->second.roll_after_ms = std::min(segment->second.roll_after_ms, roll_after);
  }
}

void Planner::look_at(const SegmentId& id, const Segment& segment) {
  if (segment.open) {
    plan_.open.insert(id);
    const bool old = now_ms_ - segment.created_ms >= segment.roll_after_ms;
    if (old || compaction_waits_for(id, segment)) plan_.work.rolls.push_back(id);
    return;
  }
  plan_.closed.insert(id);
  plan_.dead_bytes += segment.bytes - std::min(segment.live_bytes, segment.bytes);
  if (segment.live_ranges == 0 && plan_.work.removals.size() < kMaxRemovals) plan_.work.removals.push_back(id);
}

/// Compaction takes closed segments only. segment.bytes alone, 1 GiB by default, would let it wait until a topic of a
/// few keys is a thousand times too large.
bool Planner::compaction_waits_for(const SegmentId& id, const Segment& segment) const {
  if ((id.log_class & kCompactedClass) == 0) return false;
  uint64_t closed = 0;
  for (auto other = segments_.lower_bound({id.log_class, 0});
       other != segments_.end() && other->first.log_class == id.log_class; ++other)
    if (!other->second.open) closed += other->second.live_bytes;
  return segment.live_bytes >= std::max(kMinDirtyBytes, closed);
}

bool Planner::is_stranded(const Segment& segment) const {
  return !segment.open && segment.live_ranges > 0 && segment.live_bytes < segment.bytes / 2;
}

void Planner::find_stranded() {
  for (const auto& [id, topic] : view_.topics())
    for (uint32_t number = 0; number < topic->partitions(); ++number) {
      const PartitionLog* log = view_.partitions().find(topic->partition_ids[number]);
      for (size_t i = 0; log != nullptr && i < log->ranges(); ++i) {
        const SegmentRange& range = log->range(i);
        auto segment = segments_.find({range.log_class, range.segment});
        if (segment != segments_.end() && is_stranded(segment->second)) plan_.stranded.push_back({{id, number}, range});
      }
    }
  auto live_share = [this](const Stranded& stranded) {
    const Segment& segment = segments_.at({stranded.range.log_class, stranded.range.segment});
    return static_cast<double>(segment.live_bytes) / static_cast<double>(segment.bytes);
  };
  std::sort(plan_.stranded.begin(), plan_.stranded.end(), [&](const Stranded& a, const Stranded& b) {
    const double share_a = live_share(a), share_b = live_share(b);
    if (share_a != share_b) return share_a < share_b;
    return std::tie(a.range.log_class, a.range.segment, a.partition, a.range.first_offset) <
           std::tie(b.range.log_class, b.range.segment, b.partition, b.range.first_offset);
  });
  if (plan_.stranded.size() > kMaxStranded) plan_.stranded.resize(kMaxStranded);
}

}  // namespace

Result<RetentionPlan> plan_retention(const StoreView& view, const LogOptions& options, int64_t now_ms) {
  return Planner(view, options, now_ms).run();
}

}  // namespace millrace::bus
