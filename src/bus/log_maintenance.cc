#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "bus/log_writer.h"
#include "bus/record_batch.h"
#include "proto/bus.pb.h"

/// LogWriter::maintain(): what retention and compaction do to the log.
namespace millrace::bus {
namespace {

using proto::SegmentRow;

tl::unexpected<Error> changed(const TopicPartition& partition, const SegmentId& segment, std::string_view what) {
  return fail(
      ErrorKind::kConflict, "LOG_CHANGED",
      fmt::format("{} (class {}, segment {}): {}", describe(partition), segment.log_class, segment.number, what));
}

/// What the batches hold together. Errors: kInternal when one is not sound or does not follow the one before it.
Result<SegmentRange> range_of(const SegmentId& segment, const std::vector<Bytes>& batches) {
  SegmentRange range{segment.log_class, segment.number, 0, 0, INT64_MIN, 0};
  for (const Bytes& batch : batches) {
    auto info = read_batch_info(batch);
    if (!info) return fail(ErrorKind::kInternal, "REPLACEMENT_UNSOUND", info.error().message);
    const auto first = static_cast<uint64_t>(info->base_offset);
    if (range.bytes == 0)
      range.first_offset = first;
    else if (first != range.next_offset)
      return fail(ErrorKind::kInternal, "REPLACEMENT_UNSOUND",
                  fmt::format("offset {} follows {}", first, range.next_offset));
    range.next_offset = static_cast<uint64_t>(info->next_offset());
    range.max_timestamp_ms = std::max(range.max_timestamp_ms, info->max_timestamp_ms);
    range.bytes += batch.size();
  }
  if (range.empty()) return fail(ErrorKind::kInternal, "REPLACEMENT_UNSOUND", "there is no batch");
  return range;
}

/// The head of a range leaves its segment. In the row it may be several, one behind the other. False when the row does
/// not name all of it.
bool take_out(SegmentRow& row, uint32_t partition, uint64_t first_offset, uint64_t next_offset, uint64_t bytes) {
  while (first_offset < next_offset) {
    int at = 0;
    while (at < row.ranges_size() &&
           (row.ranges(at).partition() != partition || row.ranges(at).first_offset() != first_offset))
      ++at;
    if (at == row.ranges_size()) return false;
    SegmentRow::Range& range = *row.mutable_ranges(at);
    if (range.next_offset() > next_offset) {
      range.set_first_offset(next_offset);
      range.set_bytes(range.bytes() - std::min(bytes, range.bytes()));
      return true;
    }
    first_offset = range.next_offset();
    bytes -= std::min(bytes, range.bytes());
    row.mutable_ranges()->DeleteSubrange(at, 1);
  }
  return true;
}

void put_in(SegmentRow& row, uint32_t partition, SegmentRange moved) {
  row.set_bytes(row.bytes() + moved.bytes);
  // What it joins on either side becomes a part of it, as in PartitionLog::move().
  for (int at = row.ranges_size(); at-- > 0;) {
    const SegmentRow::Range& range = row.ranges(at);
    if (range.partition() != partition) continue;
    if (range.next_offset() != moved.first_offset && range.first_offset() != moved.next_offset) continue;
    moved.first_offset = std::min(moved.first_offset, range.first_offset());
    moved.next_offset = std::max(moved.next_offset, range.next_offset());
    moved.max_timestamp_ms = std::max(moved.max_timestamp_ms, range.max_timestamp_ms());
    moved.bytes += range.bytes();
    row.mutable_ranges()->DeleteSubrange(at, 1);
  }
  SegmentRow::Range& range = *row.add_ranges();
  range.set_partition(partition);
  range.set_first_offset(moved.first_offset);
  range.set_next_offset(moved.next_offset);
  range.set_max_timestamp_ms(moved.max_timestamp_ms);
  range.set_bytes(moved.bytes);
}

bool lies_in(const PartitionLog& log, const SegmentId& segment) {
  for (size_t i = 0; i < log.ranges(); ++i)
    if (log.range(i).log_class == segment.log_class && log.range(i).segment == segment.number) return true;
  return false;
}

}  // namespace

MaintenanceResult LogWriter::maintain(Maintenance& work, const store::Snapshot& snapshot, store::WriteBatch& batch) {
  Replaced replaced;
  SegmentRows& rows = replaced.rows;
  for (const SegmentId& segment : work.removals) MILLRACE_TRY(read_segment_row(segment, snapshot, rows));
  if (work.target) MILLRACE_TRY(read_segment_row(*work.target, snapshot, rows));
  for (const Replace& one : work.replaces) {
    if (!rows.contains(one.source)) MILLRACE_TRY(read_segment_row(one.source, snapshot, rows));
    MILLRACE_TRY(replace(one, work, replaced));
  }
  // From here on nothing fails.
  MaintenanceReceipt receipt;
  receipt.target = replaced.target;
  SegmentRows removable;
  for (const SegmentId& segment : work.removals)
    if (auto row = rows.find(segment); row != rows.end()) removable.insert(*row);
  if (!work.replaces.empty()) receipt.row_bytes = put_replaced(work, std::move(replaced), batch);
  for (const Trim& one : work.trims) trim(one, batch);
  if (work.cleaned) note_cleaned(*work.cleaned, batch);
  for (const SegmentId& segment : work.rolls) roll_early(segment, batch);
  for (const auto& [segment, row] : removable)
    if (remove_segment(segment, row, batch)) receipt.removed.push_back(segment);
  return receipt;
}

/// A row that is not there is left out.
Status LogWriter::read_segment_row(const SegmentId& segment, const store::Snapshot& snapshot, SegmentRows& rows) const {
  const Bytes key = segment_row_key(segment.log_class, segment.number);
  std::optional<Bytes> value;
  if (auto drafted = segment_rows_.find(segment); drafted != segment_rows_.end()) {
    value = drafted->second;
  } else {
    auto stored = snapshot.get(store::Table::kMeta, key);
    if (!stored) return tl::unexpected(std::move(stored.error()));
    value = *std::move(stored);
  }
  if (!value) return {};
  if (!rows[segment].ParseFromString(*value))
    return fail(ErrorKind::kCorruption, "LOG_DAMAGED",
                fmt::format("segment row {} of meta cannot be read", to_hex(key)));
  return {};
}

uint64_t LogWriter::put_segment_row(const SegmentId& segment, const SegmentRow& row, store::WriteBatch& batch) {
  Bytes& drafted = segment_rows_[segment];
  drafted = row.SerializeAsString();
  batch.put(store::Table::kMeta, segment_row_key(segment.log_class, segment.number), drafted);
  return drafted.size();
}

Status LogWriter::replace(const Replace& work, const Maintenance& all, Replaced& so_far) const {
  auto owner = topic(work.partition.topic);
  if (!owner || work.partition.partition >= owner->partitions()) return unknown_partition(work.partition);
  const uint32_t id = owner->partition_ids[work.partition.partition];
  const LogClass log_class = log_class_of(*owner);
  SegmentRows& rows = so_far.rows;
  auto source = rows.find(work.source);
  if (source == rows.end() || source->second.open()) return changed(work.partition, work.source, "it is not closed");
  if (!so_far.target) {
    so_far.target = all.target.value_or(SegmentId{log_class, std::max(state_.next_segment, next_segment_)});
    if (!all.target) rows[*so_far.target].set_created_ms(clock_.wall_ms());
  }
  const SegmentId to = *so_far.target;
  if (to == work.source || to.log_class != log_class || !rows.contains(to) || rows.at(to).open())
    return changed(work.partition, to, "it is not the segment to write to any more");
  auto moved = range_of(to, work.batches);
  if (!moved) return tl::unexpected(std::move(moved.error()));
  auto [log, is_first] = so_far.logs.try_emplace(id, *partition(id));
  if (!is_first) return changed(work.partition, work.source, "it is named twice");
  if (!log->second.move({work.source.log_class, work.source.number, work.first_offset}, work.source_bytes, *moved) ||
      !take_out(source->second, id, work.first_offset, moved->next_offset, work.source_bytes))
    return changed(work.partition, work.source, fmt::format("no such range begins at offset {}", work.first_offset));
  SegmentRow& target_row = rows.at(to);
  target_row.set_closed_ms(std::max(target_row.closed_ms(), source->second.closed_ms()));
  put_in(target_row, id, *moved);
  so_far.changed.insert({work.source, to});
  return {};
}

/// Answers the bytes of the segments' rows.
uint64_t LogWriter::put_replaced(const Maintenance& work, Replaced replaced, store::WriteBatch& batch) {
  const SegmentId to = *replaced.target;
  if (!work.target) take_segment_number(batch);
  uint64_t bytes = 0;
  for (const SegmentId& segment : replaced.changed) bytes += put_segment_row(segment, replaced.rows.at(segment), batch);
  for (const Replace& one : work.replaces) {
    const uint32_t id = topic(one.partition.topic)->partition_ids[one.partition.partition];
    for (const Bytes& record_batch : one.batches) {
      const auto base_offset = static_cast<uint64_t>(read_batch_info(record_batch)->base_offset);
      batch.put(table_of(to.log_class), log_key(to.log_class, to.number, id, base_offset), record_batch);
    }
  }
  for (auto& [id, log] : replaced.logs) touch(id) = std::move(log);
  return bytes;
}

void LogWriter::trim(const Trim& work, store::WriteBatch& batch) {
  auto owner = topic(work.partition.topic);
  if (!owner || work.partition.partition >= owner->partitions()) return;
  const uint32_t id = owner->partition_ids[work.partition.partition];
  const PartitionLog* log = partition(id);
  const uint64_t start = std::min(work.log_start, log->high_watermark);
  if (start <= log->log_start) return;
  touch(id).trim(start);
  Bytes value;
  append_be(value, start);
  batch.put(store::Table::kMeta, log_start_key(id), value);
}

void LogWriter::note_cleaned(const Cleaned& work, store::WriteBatch& batch) {
  auto owner = topic(work.partition.topic);
  if (!owner || work.partition.partition >= owner->partitions()) return;
  const uint32_t id = owner->partition_ids[work.partition.partition];
  if (work.to <= partition(id)->clean_to) return;
  touch(id).clean_to = work.to;
  Bytes value;
  append_be(value, work.to);
  batch.put(store::Table::kMeta, clean_to_key(id), value);
}

void LogWriter::roll_early(const SegmentId& segment, store::WriteBatch& batch) {
  const OpenSegment* open = find_open(segment.log_class);
  if (open == nullptr || open->number != segment.number || open->bytes == 0) return;
  roll(segment.log_class, *open, batch);
  open_[segment.log_class] = std::nullopt;
}

bool LogWriter::remove_segment(const SegmentId& segment, const SegmentRow& row, store::WriteBatch& batch) {
  if (row.open()) return false;
  for (const SegmentRow::Range& range : row.ranges())
    if (const PartitionLog* log = partition(range.partition()); log != nullptr && lies_in(*log, segment)) return false;
  const auto [from, to] = segment_bounds(segment);
  batch.erase(store::Table::kMeta, segment_row_key(segment.log_class, segment.number));
  batch.erase_range(table_of(segment.log_class), from, to);
  return true;
}

}  // namespace millrace::bus
