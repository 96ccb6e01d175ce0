#include "bus/compaction.h"

#include <algorithm>
#include <utility>

namespace millrace::bus {
namespace {

constexpr int16_t kLogAppendTimeBit = 8;

/// Its records may lie in another batch, or in none.
bool is_open(const BatchInfo& info) {
  return info.compression() == Compression::kNone &&
         (info.attributes & ~(BatchInfo::kHasDeleteHorizon | kLogAppendTimeBit)) == 0;
}

}  // namespace

bool LastOffsets::add(ByteView key, uint64_t offset, bool needed) {
  auto [entry, is_new] = offsets_.try_emplace(Bytes(key), offset);
  if (!is_new) {
    entry->second = offset;
    return true;
  }
  bytes_ += key.size() + kEntryBytes;
  if (bytes_ <= max_bytes_ || needed) return true;
  bytes_ -= key.size() + kEntryBytes;
  offsets_.erase(entry);
  return false;
}

bool LastOffsets::is_overtaken(ByteView key, uint64_t offset) const {
  auto last = offsets_.find(Bytes(key));
  return last != offsets_.end() && last->second > offset;
}

Result<BatchCleaner::Kept> BatchCleaner::keep(const BatchInfo& info, ByteView batch) const {
  Kept kept;
  const auto horizon = info.delete_horizon_ms();
  bool tombstones = false;
  for (RecordReader reader(info, batch); reader.more();) {
    RecordView record;
    if (auto read = reader.next(record); !read)
      return fail(ErrorKind::kCorruption, "LOG_DAMAGED", std::move(read.error().message));
    const bool tombstone = record.key && !record.value;
    const bool goes = record.key && (rule_.last.is_overtaken(*record.key, static_cast<uint64_t>(record.offset)) ||
                                     (tombstone && horizon && *horizon <= rule_.now_ms && !opaque_before_));
    if (goes) {
      kept.all = false;
    } else {
      tombstones = tombstones || tombstone;
      kept.records.push_back(std::move(record));
    }
  }
  if (tombstones) kept.horizon_ms = horizon ? *horizon : rule_.now_ms + rule_.delete_retention_ms;
  return kept;
}

void BatchCleaner::note_opaque(const BatchInfo& info) {
  if (!is_open(info) && !info.is_control()) opaque_before_ = true;
}

Result<bool> BatchCleaner::changes(ByteView batch) {
  auto info = read_batch_info(batch);
  if (!info) return fail(ErrorKind::kCorruption, "LOG_DAMAGED", std::move(info.error().message));
  note_opaque(*info);
  if (!is_open(*info)) return false;
  auto kept = keep(*info, batch);
  if (!kept) return tl::unexpected(std::move(kept.error()));
  note(kept->horizon_ms);
  return !kept->all || kept->horizon_ms.has_value() != info->delete_horizon_ms().has_value();
}

void BatchCleaner::note(const std::optional<int64_t>& horizon_ms) {
  if (!horizon_ms) return;
  if (opaque_before_ && *horizon_ms <= rule_.now_ms) return;  // That of a tombstone which has to stay.
  if (!next_horizon_ || *horizon_ms < *next_horizon_) next_horizon_ = horizon_ms;
}

/// A batch has one horizon, so its tombstones have the same; records that are none go with any.
bool BatchCleaner::joins(const BatchInfo& info, const Kept& kept, size_t bytes) const {
  if (!building_) return false;
  if (static_cast<uint64_t>(info.next_offset() - base_offset_) > kMaxSpan) return false;
  if (kept.records.empty()) return true;
  if (builder_.bytes() + bytes > kMaxJoinedBytes) return false;
  return !kept.horizon_ms || kept.horizon_ms == horizon_ms_;
}

void BatchCleaner::begin(const BatchInfo& info, const std::optional<int64_t>& horizon_ms) {
  flush();
  building_ = true;
  base_offset_ = next_offset_ = info.base_offset;
  horizon_ms_ = horizon_ms;
  if (horizon_ms) builder_.set_base_timestamp(*horizon_ms);
}

Status BatchCleaner::add(ByteView batch) {
  auto info = read_batch_info(batch);
  if (!info) return fail(ErrorKind::kCorruption, "LOG_DAMAGED", std::move(info.error().message));
  note_opaque(*info);
  const bool append_time = info->timestamp_type() == TimestampType::kLogAppendTime;
  Kept kept;
  if (is_open(*info)) {
    auto found = keep(*info, batch);
    if (!found) return tl::unexpected(std::move(found.error()));
    kept = *std::move(found);
    note(kept.horizon_ms);
  }
  if (!is_open(*info) || (append_time && !kept.records.empty() && kept.all && !kept.horizon_ms)) {
    flush();
    done_.emplace_back(batch);
    return {};
  }
  // Records with one time, which their batch says, stay among themselves.
  const bool alone = append_time && !kept.records.empty();
  if (alone || !joins(*info, kept, batch.size())) begin(*info, kept.horizon_ms);
  for (const RecordView& record : kept.records)
    builder_.add_at(static_cast<int32_t>(record.offset - base_offset_), record);
  next_offset_ = info->next_offset();
  leader_epoch_ = std::max(leader_epoch_, info->leader_epoch);
  if (alone) flush(kLogAppendTimeBit);
  return {};
}

void BatchCleaner::flush(int16_t attributes) {
  if (!building_) return;
  if (horizon_ms_) attributes = static_cast<int16_t>(attributes | BatchInfo::kHasDeleteHorizon);
  done_.push_back(builder_.finish_at(base_offset_, leader_epoch_, static_cast<int32_t>(next_offset_ - base_offset_ - 1),
                                     attributes));
  building_ = false;
  leader_epoch_ = 0;
  horizon_ms_.reset();
}

std::vector<Bytes> BatchCleaner::finish() {
  flush();
  return std::exchange(done_, {});
}

}  // namespace millrace::bus
