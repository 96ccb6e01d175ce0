#include "bus/store_view.h"

#include <spdlog/fmt/fmt.h>

namespace millrace::bus {
namespace {

tl::unexpected<Error> damaged(const TopicPartition& partition, const SegmentRange& range, uint64_t offset,
                              std::string_view what) {
  return fail(ErrorKind::kCorruption, "LOG_DAMAGED",
              fmt::format("{}, offset {} (class {}, segment {}): {}", describe(partition), offset, range.log_class,
                          range.segment, what));
}

/// Index of the range that holds `offset`, which lies between log start and high watermark.
size_t range_of(const PartitionLog& log, uint64_t offset) {
  size_t low = 0, high = log.ranges();
  while (low + 1 < high) {
    size_t middle = (low + high) / 2;
    if (log.range(middle).first_offset <= offset)
      low = middle;
    else
      high = middle;
  }
  return low;
}

}  // namespace

Result<Row> parse_row(store::Table table, ByteView key, ByteView stored) {
  if (stored.size() < kVersionBytes)
    return fail(ErrorKind::kCorruption, "ROW_DAMAGED",
                fmt::format("row {} of {} has only {} bytes", to_hex(key), store::name_of(table), stored.size()));
  return Row{Bytes(stored.substr(kVersionBytes)), load_be<uint64_t>(stored.data())};
}

Result<std::optional<Row>> StoreView::get(store::Table table, ByteView key) const {
  return read_row(*snapshot_, table, key);
}

Result<std::optional<Row>> read_row(const store::Snapshot& snapshot, store::Table table, ByteView key) {
  auto stored = snapshot.get(table, key);
  if (!stored) return tl::unexpected(std::move(stored.error()));
  if (!*stored) return std::nullopt;
  auto row = parse_row(table, key, **stored);
  if (!row) return tl::unexpected(std::move(row.error()));
  return std::optional<Row>(*std::move(row));
}

Result<std::vector<std::pair<Bytes, Row>>> StoreView::list(store::Table table, ByteView prefix, ByteView after,
                                                           size_t limit) const {
  std::vector<std::pair<Bytes, Row>> found;
  auto rows = snapshot_->scan(table, prefix, prefix_end(prefix));
  rows->seek(after < prefix ? prefix : after);
  if (rows->valid() && !after.empty() && rows->key() == after) rows->next();
  for (; rows->valid() && found.size() < limit; rows->next()) {
    auto row = parse_row(table, rows->key(), rows->value());
    if (!row) return tl::unexpected(std::move(row.error()));
    found.emplace_back(Bytes(rows->key()), *std::move(row));
  }
  MILLRACE_TRY(rows->status());
  return found;
}

StoreView::Found StoreView::find(const TopicPartition& partition) const {
  auto topic = topics_->find(partition.topic);
  if (topic == topics_->end() || partition.partition >= topic->second->partitions()) return {};
  uint32_t id = topic->second->partition_ids[partition.partition];
  return {partitions_.find(id), id};
}

std::optional<PartitionState> StoreView::partition(const TopicPartition& partition) const {
  Found found = find(partition);
  return found.log ? std::optional(found.log->state()) : std::nullopt;
}

Result<std::vector<Bytes>> StoreView::fetch(const TopicPartition& partition, uint64_t offset, size_t max_bytes) const {
  Found found = find(partition);
  if (!found.log) return unknown_partition(partition);
  const PartitionLog& log = *found.log;
  if (offset < log.log_start || offset > log.high_watermark) return offset_out_of_range(partition, offset, log.state());
  std::vector<Bytes> fetched;
  if (offset == log.high_watermark) return fetched;
  size_t bytes = 0;
  for (size_t i = range_of(log, offset); i < log.ranges(); ++i) {
    const SegmentRange& range = log.range(i);
    auto more =
        fetch_range(partition, found.id, range, std::max(offset, range.first_offset), max_bytes, fetched, bytes);
    if (!more) return tl::unexpected(std::move(more.error()));
    if (!*more) break;
  }
  return fetched;
}

Result<bool> StoreView::fetch_range(const TopicPartition& partition, uint32_t id, const SegmentRange& range,
                                    uint64_t offset, size_t max_bytes, std::vector<Bytes>& fetched,
                                    size_t& bytes) const {
  auto rows =
      snapshot_->scan(table_of(range.log_class), log_key(range.log_class, range.segment, id, range.first_offset),
                      log_key(range.log_class, range.segment, id, range.next_offset));
  rows->seek_for_prev(log_key(range.log_class, range.segment, id, offset));
  uint64_t expected = offset;
  for (bool first = true; rows->valid(); rows->next(), first = false) {
    if (!fetched.empty() && bytes + rows->value().size() > max_bytes) return false;
    auto info = read_batch_info(rows->value());
    uint64_t base_offset = parse_log_key(rows->key()).base_offset;
    if (!info || info->total_bytes != rows->value().size() || info->base_offset != static_cast<int64_t>(base_offset))
      return damaged(partition, range, base_offset, info ? "the batch is not the one written" : info.error().message);
    // The batch that holds the first offset begins at or before it, the others follow without a gap.
    auto next_offset = static_cast<uint64_t>(info->next_offset());
    if (first ? next_offset <= expected : base_offset != expected)
      return damaged(partition, range, expected, "the record batch is missing");
    fetched.emplace_back(rows->value());
    bytes += rows->value().size();
    expected = next_offset;
  }
  MILLRACE_TRY(rows->status());
  if (expected != range.next_offset) return damaged(partition, range, expected, "the record batch is missing");
  return true;
}

Result<uint64_t> StoreView::offset_for_time(const TopicPartition& partition, int64_t timestamp_ms) const {
  Found found = find(partition);
  if (!found.log) return unknown_partition(partition);
  const PartitionLog& log = *found.log;
  for (size_t i = log.ranges() == 0 ? 0 : range_of(log, log.log_start); i < log.ranges(); ++i) {
    const SegmentRange& range = log.range(i);
    if (range.max_timestamp_ms < timestamp_ms) continue;
    auto offset = search_range(partition, found.id, range, std::max(log.log_start, range.first_offset), timestamp_ms);
    if (!offset) return tl::unexpected(std::move(offset.error()));
    if (*offset) return **offset;
  }
  return log.high_watermark;
}

Result<std::optional<uint64_t>> StoreView::search_range(const TopicPartition& partition, uint32_t id,
                                                        const SegmentRange& range, uint64_t from,
                                                        int64_t timestamp_ms) const {
  auto rows =
      snapshot_->scan(table_of(range.log_class), log_key(range.log_class, range.segment, id, range.first_offset),
                      log_key(range.log_class, range.segment, id, range.next_offset));
  for (rows->seek_for_prev(log_key(range.log_class, range.segment, id, from)); rows->valid(); rows->next()) {
    auto offset = first_offset_at(rows->value(), timestamp_ms, from);
    if (!offset) return damaged(partition, range, parse_log_key(rows->key()).base_offset, offset.error().message);
    if (*offset) return **offset;
  }
  MILLRACE_TRY(rows->status());
  return std::nullopt;
}

}  // namespace millrace::bus
