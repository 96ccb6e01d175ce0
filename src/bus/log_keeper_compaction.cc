#include <spdlog/spdlog.h>

#include <algorithm>

#include "bus/log_keeper.h"

/// LogKeeper's compaction: which partitions, and one pass over one of them.
namespace millrace::bus {

/// As much dirty as clean (Kafka's min.cleanable.dirty.ratio of 0.5), or a tombstone whose time has come.
std::vector<LogKeeper::Dirty> LogKeeper::find_dirty(const StoreView& view) const {
  std::vector<Dirty> found;
  for (const auto& [id, topic] : view.topics()) {
    if (!topic->settings.cleanup_compact) continue;
    for (uint32_t number = 0; number < topic->partitions(); ++number) {
      const uint32_t partition_id = topic->partition_ids[number];
      const PartitionLog* log = view.partitions().find(partition_id);
      if (log == nullptr || given_up_.contains({id, number})) continue;
      Dirty dirty{{id, number},  partition_id,  log_class_of(*topic), topic->settings.delete_retention_ms,
                  log->clean_to, log->log_start};
      uint64_t clean_bytes = 0, dirty_bytes = 0;
      for (size_t i = 0; i < log->ranges() && is_closed(log->range(i)); ++i) {
        const SegmentRange& range = log->range(i);
        (range.next_offset <= log->clean_to ? clean_bytes : dirty_bytes) += range.bytes;
        dirty.to = range.next_offset;
      }
      auto horizon = horizons_.find(partition_id);
      const bool due = horizon != horizons_.end() && horizon->second <= clock_.wall_ms() && dirty.to > log->log_start;
      if ((dirty_bytes > 0 && dirty_bytes >= clean_bytes) || due) found.push_back(dirty);
    }
  }
  return found;
}

void LogKeeper::note_horizon(uint32_t partition_id, int64_t horizon_ms) {
  auto [known, is_new] = horizons_.try_emplace(partition_id, horizon_ms);
  if (!is_new) known->second = std::min(known->second, horizon_ms);
}

Status LogKeeper::compact() {
  auto view = log_.store_view();
  if (!view) return {};
  std::erase_if(horizons_, [&](const auto& one) { return view->partitions().find(one.first) == nullptr; });
  std::erase_if(given_up_, [&](const auto& partition) { return !view->topics().contains(partition.topic); });
  const std::vector<Dirty> found = find_dirty(*view);
  view.reset();
  for (const Dirty& dirty : found) {
    auto cleaned = clean(dirty);
    if (cleaned) continue;
    if (!note_damage(cleaned.error())) return cleaned;
    given_up_.insert(dirty.partition);
  }
  return {};
}

Status LogKeeper::clean(const Dirty& dirty) {
  LastOffsets last(options_.compaction_memory_bytes);
  auto to = read_keys(dirty, dirty.from, dirty.to, last);
  if (!to) return tl::unexpected(std::move(to.error()));
  BatchCleaner cleaner({last, clock_.wall_ms(), dirty.delete_retention_ms});
  uint64_t offset = 0;
  while (offset < *to) {
    auto range = closed_range_at(dirty, offset);
    if (!range) return {};
    auto needed = needs_cleaning(dirty, *range, *to, cleaner);
    if (!needed) return tl::unexpected(std::move(needed.error()));
    if (!*needed) {
      offset = range->next_offset;
      continue;
    }
    auto next = clean_head(dirty, *range, *to, cleaner);
    if (!next) return tl::unexpected(std::move(next.error()));
    if (!*next) return {};
    offset = **next;
  }
  if (auto horizon = cleaner.next_horizon_ms())
    horizons_[dirty.id] = *horizon;
  else
    horizons_.erase(dirty.id);
  if (*to <= dirty.from) return {};
  Maintenance work;
  work.cleaned = Cleaned{dirty.partition, *to};
  auto noted = log_.maintain(std::move(work));
  return noted ? Status{} : Status(tl::unexpected(std::move(noted.error())));
}

Result<uint64_t> LogKeeper::read_keys(const Dirty& dirty, uint64_t from, uint64_t to, LastOffsets& last) {
  auto view = log_.store_view();
  const auto state = view ? view->partition(dirty.partition) : std::nullopt;
  view.reset();
  if (!state) return 0;
  const uint64_t begin = std::max(from, state->log_start);
  uint64_t offset = begin;
  while (offset < to) {
    auto batches = read_chunk(dirty.partition, offset, to);
    if (!batches) return tl::unexpected(std::move(batches.error()));
    if (batches->empty()) return offset;
    uint64_t bytes = 0;
    for (const Bytes& batch : *batches) {
      const BatchInfo info = *read_batch_info(batch);
      bytes += batch.size();
      if (info.compression() == Compression::kNone && !info.is_control()) {
        RecordView record;
        for (RecordReader reader(info, batch); reader.more();) {
          if (auto read = reader.next(record); !read)
            return fail(ErrorKind::kCorruption, "LOG_DAMAGED",
                        fmt::format("{}: {}", describe(dirty.partition), read.error().message));
          // One batch is always taken: without it a partition would never become clean.
          const bool is_first = offset == begin;
          if (record.key && !last.add(*record.key, static_cast<uint64_t>(record.offset), is_first))
            return static_cast<uint64_t>(info.base_offset);
        }
      }
      offset = static_cast<uint64_t>(info.next_offset());
    }
    stats_.cleaned_bytes.fetch_add(bytes, std::memory_order_relaxed);
    MILLRACE_TRY(spend_in_pass(bytes));
  }
  return offset;
}

std::optional<SegmentRange> LogKeeper::closed_range_at(const Dirty& dirty, uint64_t offset) const {
  auto view = log_.store_view();
  if (!view) return std::nullopt;
  auto topic = view->topics().find(dirty.partition.topic);
  const PartitionLog* log = topic == view->topics().end() ? nullptr : view->partitions().find(dirty.id);
  for (size_t i = 0; log != nullptr && i < log->ranges(); ++i) {
    SegmentRange range = log->range(i);
    if (range.next_offset <= offset) continue;
    // Written by this very pass, or by a later one.
    if (!is_closed(range)) return std::nullopt;
    return range;
  }
  return std::nullopt;
}

Result<bool> LogKeeper::needs_cleaning(const Dirty& dirty, const SegmentRange& range, uint64_t to,
                                       BatchCleaner& cleaner) {
  if (range.log_class != dirty.log_class) return true;
  auto view = log_.store_view();
  const auto state = view ? view->partition(dirty.partition) : std::nullopt;
  view.reset();
  uint64_t offset = std::max(range.first_offset, state ? state->log_start : 0);
  const uint64_t end = std::min(range.next_offset, to);
  while (offset < end) {
    auto batches = read_chunk(dirty.partition, offset, end);
    if (!batches) return tl::unexpected(std::move(batches.error()));
    if (batches->empty()) return false;
    uint64_t bytes = 0;
    for (const Bytes& batch : *batches) {
      auto changes = cleaner.changes(batch);
      if (!changes) return tl::unexpected(std::move(changes.error()));
      if (*changes) return true;
      offset = static_cast<uint64_t>(read_batch_info(batch)->next_offset());
      bytes += batch.size();
    }
    MILLRACE_TRY(spend_in_pass(bytes));
  }
  return false;
}

Result<std::optional<uint64_t>> LogKeeper::clean_head(const Dirty& dirty, const SegmentRange& range, uint64_t to,
                                                      BatchCleaner& cleaner) {
  auto view = log_.store_view();
  const auto state = view ? view->partition(dirty.partition) : std::nullopt;
  view.reset();
  if (!state) return std::nullopt;
  auto source = range;
  uint64_t offset = std::max(range.first_offset, state->log_start);
  const uint64_t end = std::min(range.next_offset, to);
  while (offset < end) {
    auto batches = read_chunk(dirty.partition, offset, end);
    if (!batches) return tl::unexpected(std::move(batches.error()));
    if (batches->empty()) return std::nullopt;
    uint64_t before = 0, after = 0;
    for (const Bytes& batch : *batches) {
      MILLRACE_TRY(cleaner.add(batch));
      before += batch.size();
      offset = static_cast<uint64_t>(read_batch_info(batch)->next_offset());
    }
    std::vector<Bytes> cleaned = cleaner.finish();
    for (const Bytes& batch : cleaned) after += batch.size();
    Maintenance work;
    work.replaces.push_back(
        {dirty.partition, {source.log_class, source.segment}, source.first_offset, before, std::move(cleaned)});
    auto row_bytes = replace(std::move(work), dirty.log_class);
    if (!row_bytes) return tl::unexpected(std::move(row_bytes.error()));
    if (!*row_bytes) return std::nullopt;
    source.first_offset = offset;
    stats_.cleaned_bytes.fetch_add(before, std::memory_order_relaxed);
    stats_.compacted_bytes.fetch_add(before - std::min(before, after), std::memory_order_relaxed);
    MILLRACE_TRY(spend_in_pass(before + after + **row_bytes));
  }
  return offset;
}

}  // namespace millrace::bus
