#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "bus/log_state.h"
#include "bus/log_writer.h"
#include "proto/bus.pb.h"

namespace millrace::bus {
namespace {

using store::Table;

tl::unexpected<Error> damaged(std::string what) {
  return fail(ErrorKind::kCorruption, "LOG_DAMAGED", std::move(what));
}

/// Recovery, step by step; each step returns the error that stops it.
class Recovery {
 public:
  Recovery(const store::Store& store, const TopicSettings& defaults)
      : snapshot_(store.snapshot()), defaults_(defaults) {}

  Result<LogState> run() {
    MILLRACE_TRY(read_counters());
    MILLRACE_TRY(read_topics());
    MILLRACE_TRY(read_offsets(kLogStartPrefix, log_starts_));
    MILLRACE_TRY(read_offsets(kCleanToPrefix, clean_to_));
    MILLRACE_TRY(read_segments());
    MILLRACE_TRY(build_partitions());
    return std::move(state_);
  }

 private:
  Result<uint32_t> counter(ByteView key, uint32_t otherwise);
  Status read_counters();
  Status read_topics();
  Status read_offsets(ByteView prefix, std::map<uint32_t, uint64_t>& offsets);
  Status read_segments();
  Status read_segment(ByteView key, ByteView value);
  Status scan_segment(LogClass log_class, uint32_t number, OpenSegment& segment);
  void take_ranges(LogClass log_class, uint32_t number, const proto::SegmentRow& row, OpenSegment* open);
  void discard(const SegmentRange& range, uint32_t id);
  Status build_partitions();

  const std::shared_ptr<const store::Snapshot> snapshot_;
  const TopicSettings& defaults_;
  bool open_rows_hold_ = false;
  LogState state_;
  std::map<uint32_t, std::vector<SegmentRange>> ranges_;  ///< by partition id; live partitions only
  std::map<uint32_t, uint64_t> log_starts_;               ///< by partition id; not all have one
  std::map<uint32_t, uint64_t> clean_to_;                 ///< by partition id; not all have one
};

Result<uint32_t> Recovery::counter(ByteView key, uint32_t otherwise) {
  auto value = snapshot_->get(Table::kMeta, key);
  if (!value) return tl::unexpected(std::move(value.error()));
  if (!*value) return otherwise;
  if ((*value)->size() != sizeof(uint32_t))
    return damaged(fmt::format("row {} of meta has {} bytes", key, (*value)->size()));
  return load_be<uint32_t>((*value)->data());
}

Status Recovery::read_counters() {
  auto next = counter(kNextPartitionIdKey, 1);
  if (!next) return tl::unexpected(std::move(next.error()));
  state_.next_partition_id = *next;
  auto segment = counter(kNextSegmentKey, 1);
  if (!segment) return tl::unexpected(std::move(segment.error()));
  state_.next_segment = *segment;
  auto epoch = counter(kLeaderEpochKey, 0);
  if (!epoch) return tl::unexpected(std::move(epoch.error()));
  state_.leader_epoch = static_cast<int32_t>(*epoch);
  // Not the store's word: it may have been closed well after the log's last write was refused.
  auto mark = snapshot_->get(Table::kMeta, kOpenSegmentsKey);
  if (!mark) return tl::unexpected(std::move(mark.error()));
  open_rows_hold_ = mark->has_value();
  return {};
}

Status Recovery::read_topics() {
  auto topics = std::make_shared<TopicMap>();
  auto rows = snapshot_->scan(Table::kTopics, "", "");
  for (rows->seek_to_first(); rows->valid(); rows->next()) {
    if (rows->value().size() < kVersionBytes)
      return damaged(fmt::format("topic row {} is too short", to_hex(rows->key())));
    auto topic = parse_topic(rows->value().substr(kVersionBytes), defaults_);
    if (!topic) return tl::unexpected(std::move(topic.error()));
    state_.partition_count += topic->partitions();
    for (uint32_t id : topic->partition_ids) {
      ranges_[id];
      state_.next_partition_id = std::max(state_.next_partition_id, id + 1);
    }
    Uuid id = topic->id;
    (*topics)[id] = std::make_shared<Topic>(*std::move(topic));
  }
  MILLRACE_TRY(rows->status());
  state_.topics = std::move(topics);
  return {};
}

Status Recovery::read_offsets(ByteView prefix, std::map<uint32_t, uint64_t>& offsets) {
  auto rows = snapshot_->scan(Table::kMeta, prefix, prefix_end(prefix));
  for (rows->seek_to_first(); rows->valid(); rows->next()) {
    if (rows->key().size() != prefix.size() + sizeof(uint32_t) || rows->value().size() != sizeof(uint64_t))
      return damaged(fmt::format("row {} of meta cannot be read", to_hex(rows->key())));
    offsets[load_be<uint32_t>(rows->key().data() + prefix.size())] = load_be<uint64_t>(rows->value().data());
  }
  return rows->status();
}

Status Recovery::read_segments() {
  auto rows = snapshot_->scan(Table::kMeta, kSegmentRowPrefix, prefix_end(kSegmentRowPrefix));
  for (rows->seek_to_first(); rows->valid(); rows->next()) MILLRACE_TRY(read_segment(rows->key(), rows->value()));
  return rows->status();
}

Status Recovery::read_segment(ByteView key, ByteView value) {
  proto::SegmentRow row;
  if (key.size() != kSegmentRowPrefix.size() + 8 || !row.ParseFromArray(value.data(), static_cast<int>(value.size())))
    return damaged(fmt::format("segment row {} of meta cannot be read", to_hex(key)));
  LogClass log_class = load_be<uint32_t>(key.data() + kSegmentRowPrefix.size());
  uint32_t number = load_be<uint32_t>(key.data() + kSegmentRowPrefix.size() + 4);
  state_.next_segment = std::max(state_.next_segment, number + 1);
  if (!row.open()) {
    take_ranges(log_class, number, row, nullptr);
    return {};
  }
  OpenSegment& open = state_.open[log_class];
  open = OpenSegment{number, row.created_ms(), 0, std::make_shared<std::vector<uint32_t>>(), 0};
  if (!open_rows_hold_) return scan_segment(log_class, number, open);
  take_ranges(log_class, number, row, &open);
  open.bytes = std::max(open.bytes, row.bytes());
  return {};
}

void Recovery::take_ranges(LogClass log_class, uint32_t number, const proto::SegmentRow& row, OpenSegment* open) {
  for (const auto& in : row.ranges()) {
    SegmentRange range{log_class, number, in.first_offset(), in.next_offset(), in.max_timestamp_ms(), in.bytes()};
    auto live = ranges_.find(in.partition());
    if (live == ranges_.end()) {
      discard(range, in.partition());
      continue;
    }
    live->second.push_back(range);
    if (open == nullptr) continue;
    open->bytes += range.bytes;
    open->members->push_back(in.partition());
    open->member_count = open->members->size();
  }
}

/// A partition whose topic is gone: its rows were left behind when the process ended.
void Recovery::discard(const SegmentRange& range, uint32_t id) {
  state_.garbage.push_back({table_of(range.log_class), log_key(range.log_class, range.segment, id, 0),
                            log_key(range.log_class, range.segment, id + 1, 0)});
}

Status Recovery::scan_segment(LogClass log_class, uint32_t number, OpenSegment& segment) {
  Bytes lower = log_key(log_class, number, 0, 0);
  Bytes upper = log_key(log_class, number + 1, 0, 0);
  auto rows = snapshot_->scan(table_of(log_class), lower, upper);
  std::vector<SegmentRange>* ranges = nullptr;
  uint32_t current = 0;
  for (rows->seek_to_first(); rows->valid();) {
    if (rows->key().size() != kLogKeyBytes) return damaged(fmt::format("log key {} is malformed", to_hex(rows->key())));
    LogKey key = parse_log_key(rows->key());
    if (ranges == nullptr || key.partition_id != current) {
      current = key.partition_id;
      auto live = ranges_.find(current);
      if (live == ranges_.end()) {
        discard({log_class, number, 0, 0, 0, 0}, current);
        ranges = nullptr;
        rows->seek(log_key(log_class, number, current + 1, 0));
        continue;
      }
      ranges = &live->second;
    }
    auto info = read_batch_info(rows->value());
    if (!info || info->base_offset != static_cast<int64_t>(key.base_offset))
      return damaged(fmt::format("partition id {}, offset {} (class {}, segment {}): {}", key.partition_id,
                                 key.base_offset, log_class, number,
                                 info ? "the batch says another offset" : info.error().message));
    SegmentRange here{log_class,
                      number,
                      key.base_offset,
                      static_cast<uint64_t>(info->next_offset()),
                      info->max_timestamp_ms,
                      rows->value().size()};
    if (!ranges->empty() && ranges->back().log_class == log_class && ranges->back().segment == number &&
        ranges->back().next_offset == here.first_offset) {
      SegmentRange& last = ranges->back();
      last.next_offset = here.next_offset;
      last.max_timestamp_ms = std::max(last.max_timestamp_ms, here.max_timestamp_ms);
      last.bytes += here.bytes;
    } else {
      ranges->push_back(here);
      segment.members->push_back(current);
    }
    segment.bytes += here.bytes;
    rows->next();
  }
  segment.member_count = segment.members->size();
  return rows->status();
}

Status Recovery::build_partitions() {
  PartitionTable::Changes changes;
  changes.reserve(ranges_.size());
  for (auto& [id, ranges] : ranges_) {
    std::sort(ranges.begin(), ranges.end(),
              [](const SegmentRange& a, const SegmentRange& b) { return a.first_offset < b.first_offset; });
    PartitionLog log;
    if (auto start = log_starts_.find(id); start != log_starts_.end()) log.log_start = start->second;
    if (auto clean = clean_to_.find(id); clean != clean_to_.end()) log.clean_to = clean->second;
    // What lies wholly below the start is not the log's any more, though it may not have been removed yet.
    std::erase_if(ranges, [&](const SegmentRange& range) { return range.next_offset <= log.log_start; });
    log.high_watermark = ranges.empty() ? log.log_start : ranges.front().first_offset;
    if (log.high_watermark > log.log_start)
      return damaged(
          fmt::format("partition id {}: offsets {} to {} are missing", id, log.log_start, log.high_watermark));
    for (const SegmentRange& range : ranges) {
      if (range.first_offset != log.high_watermark)
        return damaged(fmt::format("partition id {}: offsets {} to {} are missing before segment {} of class {}", id,
                                   log.high_watermark, range.first_offset, range.segment, range.log_class));
      log.add(range);
    }
    changes.emplace_back(id, std::move(log));
  }
  state_.partitions.apply(std::move(changes));
  return {};
}

}  // namespace

Result<LogState> recover_log(const store::Store& store, const TopicSettings& defaults) {
  return Recovery(store, defaults).run();
}

void write_open_segments(const LogState& state, store::WriteBatch& batch) {
  for (const auto& [log_class, segment] : state.open)
    batch.put(Table::kMeta, segment_row_key(log_class, segment.number),
              segment_row(log_class, segment, std::nullopt, [&](uint32_t id) { return state.partitions.find(id); }));
  write_started(state, batch);
  batch.put(Table::kMeta, kOpenSegmentsKey, "");
}

void write_started(const LogState& state, store::WriteBatch& batch) {
  Bytes epoch;
  append_be(epoch, static_cast<uint32_t>(state.leader_epoch));
  batch.put(Table::kMeta, kLeaderEpochKey, epoch);
  batch.erase(Table::kMeta, kOpenSegmentsKey);
}

}  // namespace millrace::bus
