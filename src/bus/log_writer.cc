#include "bus/log_writer.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "bus/record_batch.h"
#include "proto/bus.pb.h"

namespace millrace::bus {

std::shared_ptr<const Topic> LogWriter::topic(const Uuid& id) const {
  if (auto drafted = topics_.find(id); drafted != topics_.end()) return drafted->second;
  auto found = state_.topics->find(id);
  return found == state_.topics->end() ? nullptr : found->second;
}

const PartitionLog* LogWriter::partition(uint32_t id) const {
  if (auto drafted = partitions_.find(id); drafted != partitions_.end())
    return drafted->second ? &*drafted->second : nullptr;
  return state_.partitions.find(id);
}

Status LogWriter::check_room(const std::vector<Topic>& coming,
                             const std::vector<std::shared_ptr<const Topic>>& going) const {
  size_t topics = state_.topics->size(), partitions = state_.partition_count;
  for (const auto& [id, drafted] : topics_) {
    auto before = state_.topics->find(id);
    if (before != state_.topics->end()) --topics, partitions -= before->second->partitions();
    if (drafted) ++topics, partitions += drafted->partitions();
  }
  const size_t topics_before = topics, partitions_before = partitions;
  for (const auto& topic : going) --topics, partitions -= topic->partitions();
  for (const auto& topic : coming) ++topics, partitions += topic.partitions();
  if (topics > options_.max_topics && topics > topics_before)
    return fail(ErrorKind::kExhausted, "TOO_MANY_TOPICS",
                fmt::format("at most {} topics are kept", options_.max_topics));
  if (partitions > options_.max_partitions && partitions > partitions_before)
    return fail(ErrorKind::kExhausted, "TOO_MANY_PARTITIONS",
                fmt::format("at most {} partitions are kept", options_.max_partitions));
  return {};
}

void LogWriter::put_topic(const Topic& topic, store::WriteBatch& batch) {
  topics_[topic.id] = std::make_shared<Topic>(topic);
  uint32_t next = std::max(state_.next_partition_id, next_partition_id_);
  uint32_t needed = next;
  for (uint32_t id : topic.partition_ids) {
    if (partition(id) == nullptr) partitions_[id] = PartitionLog{};
    needed = std::max(needed, id + 1);
  }
  if (needed == next) return;
  next_partition_id_ = needed;
  Bytes value;
  append_be(value, needed);
  batch.put(store::Table::kMeta, kNextPartitionIdKey, value);
}

void LogWriter::remove_topic(const Topic& topic, store::WriteBatch& batch) {
  topics_[topic.id] = nullptr;
  for (uint32_t number = 0; number < topic.partitions(); ++number) {
    uint32_t id = topic.partition_ids[number];
    const PartitionLog* log = partition(id);
    if (log == nullptr) continue;
    for (size_t i = 0; i < log->ranges(); ++i) {
      const SegmentRange& range = log->range(i);
      garbage_.push_back({table_of(range.log_class), log_key(range.log_class, range.segment, id, 0),
                          log_key(range.log_class, range.segment, id + 1, 0)});
    }
    if (log->log_start > 0) batch.erase(store::Table::kMeta, log_start_key(id));
    if (log->clean_to > 0) batch.erase(store::Table::kMeta, clean_to_key(id));
    partitions_[id] = std::nullopt;
    removed_.push_back({topic.id, number});
  }
}

uint64_t LogWriter::append(const Topic& topic, uint32_t partition, Bytes record_batch, store::WriteBatch& batch) {
  const uint32_t id = topic.partition_ids[partition];
  const LogClass log_class = log_class_of(topic);
  OpenSegment& segment = open_segment(log_class, topic, batch);
  PartitionLog& log = touch(id);
  const uint64_t base_offset = log.high_watermark;
  auto info = read_batch_info(record_batch);
  MILLRACE_ASSERT(info, "a record batch that was not checked");
  const bool append_time = topic.settings.timestamp_type == TimestampType::kLogAppendTime;

  auto place = pending_.find(id);
  uint64_t bytes = record_batch.size();
  const auto max_bytes = static_cast<size_t>(topic.settings.max_message_bytes);
  if (place != pending_.end()) {
    Pending& pending = place->second;
    const size_t before = pending.batch.bytes();
    if (pending.log_class == log_class && pending.segment == segment.number &&
        pending.append_time_ms.has_value() == append_time && pending.batch.join(*info, record_batch, max_bytes)) {
      bytes = pending.batch.bytes() - before;
    } else {
      write(id, pending, batch);
      pending_.erase(place);
      place = pending_.end();
    }
  }
  if (place == pending_.end()) {
    Pending pending{log_class, segment.number, std::nullopt, GroupBatch(base_offset, *info, std::move(record_batch))};
    if (append_time) pending.append_time_ms = clock_.wall_ms();
    place = pending_.emplace(id, std::move(pending)).first;
  }
  pending_bytes_ += bytes;

  if (log.newest.empty() || log.newest.log_class != log_class || log.newest.segment != segment.number) {
    segment.members->resize(segment.member_count);
    segment.members->push_back(id);
    segment.member_count = segment.members->size();
  }
  segment.bytes += bytes;
  log.add({log_class, segment.number, base_offset, base_offset + static_cast<uint64_t>(info->last_offset_delta) + 1,
           place->second.append_time_ms.value_or(info->max_timestamp_ms), bytes});
  appended_.push_back({topic.id, partition});
  return base_offset;
}

void LogWriter::write(uint32_t partition_id, Pending& pending, store::WriteBatch& batch) {
  pending_bytes_ -= pending.batch.bytes();
  Bytes records = pending.batch.finish();
  if (pending.append_time_ms) assign_append_time(records, *pending.append_time_ms);
  const uint64_t base_offset = pending.batch.base_offset();
  assign_offset(records, static_cast<int64_t>(base_offset), state_.leader_epoch);
  batch.put(table_of(pending.log_class), log_key(pending.log_class, pending.segment, partition_id, base_offset),
            records);
}

void LogWriter::finish_group(store::WriteBatch& batch) {
  for (auto& [id, pending] : pending_) write(id, pending, batch);
  pending_.clear();
  erase_garbage(batch);
}

PartitionLog& LogWriter::touch(uint32_t id) {
  auto [place, is_new] = partitions_.try_emplace(id);
  if (is_new) {
    const PartitionLog* log = state_.partitions.find(id);
    MILLRACE_ASSERT(log != nullptr, "a partition that was not checked");
    place->second = *log;
  }
  MILLRACE_ASSERT(place->second.has_value(), "a partition that was removed");
  return *place->second;
}

OpenSegment& LogWriter::open_segment(LogClass log_class, const Topic& topic, store::WriteBatch& batch) {
  auto [drafted, is_new] = open_.try_emplace(log_class);
  std::optional<OpenSegment>& segment = drafted->second;
  if (is_new)
    if (auto current = state_.open.find(log_class); current != state_.open.end()) segment = current->second;
  if (segment && is_full(log_class, *segment, topic)) {
    roll(log_class, *segment, batch);
    segment.reset();
  }
  if (!segment) segment = begin_segment(log_class, batch);
  return *segment;
}

const OpenSegment* LogWriter::find_open(LogClass log_class) const {
  if (auto drafted = open_.find(log_class); drafted != open_.end())
    return drafted->second ? &*drafted->second : nullptr;
  auto current = state_.open.find(log_class);
  return current == state_.open.end() ? nullptr : &current->second;
}

/// Shared segments follow the node's size and age, a topic's own ones the topic's.
bool LogWriter::is_full(LogClass log_class, const OpenSegment& segment, const Topic& topic) const {
  bool own = (log_class & (kOwnClass | kCompactedClass)) != 0;
  uint64_t bytes = own ? static_cast<uint64_t>(topic.settings.segment_bytes) : options_.segment_bytes;
  int64_t age = own ? topic.settings.segment_ms : options_.segment_ms;
  return segment.bytes > 0 && (segment.bytes >= bytes || clock_.wall_ms() - segment.created_ms >= age);
}

uint32_t LogWriter::take_segment_number(store::WriteBatch& batch) {
  const uint32_t number = std::max(state_.next_segment, next_segment_);
  MILLRACE_ASSERT(number < UINT32_MAX, "the node has used up its segment numbers");
  next_segment_ = number + 1;
  Bytes value;
  append_be(value, next_segment_);
  batch.put(store::Table::kMeta, kNextSegmentKey, value);
  return number;
}

OpenSegment LogWriter::begin_segment(LogClass log_class, store::WriteBatch& batch) {
  OpenSegment segment;
  segment.number = take_segment_number(batch);
  segment.created_ms = clock_.wall_ms();
  segment.members = std::make_shared<std::vector<uint32_t>>();
  batch.put(store::Table::kMeta, segment_row_key(log_class, segment.number),
            segment_row(log_class, segment, std::nullopt, [](uint32_t) { return nullptr; }));
  return segment;
}

void LogWriter::roll(LogClass log_class, const OpenSegment& segment, store::WriteBatch& batch) {
  batch.put(store::Table::kMeta, segment_row_key(log_class, segment.number),
            segment_row(log_class, segment, clock_.wall_ms(), [this](uint32_t id) { return partition(id); }));
}

void LogWriter::erase_garbage(store::WriteBatch& batch) {
  erased_ = std::min(state_.garbage.size(), kGarbagePerGroup);
  for (size_t i = state_.garbage.size() - erased_; i < state_.garbage.size(); ++i) {
    const Garbage& garbage = state_.garbage[i];
    batch.erase_range(garbage.table, garbage.from, garbage.to);
  }
}

std::vector<Watches::Moved> LogWriter::accept() {
  if (!topics_.empty()) {
    auto topics = std::make_shared<TopicMap>(*state_.topics);
    for (auto& [id, topic] : topics_) {
      if (auto before = topics->find(id); before != topics->end())
        state_.partition_count -= before->second->partitions();
      if (topic) {
        state_.partition_count += topic->partitions();
        (*topics)[id] = std::move(topic);
      } else {
        topics->erase(id);
      }
    }
    state_.topics = std::move(topics);
  }
  std::vector<Watches::Moved> moved;
  for (const TopicPartition& partition : removed_) moved.push_back({partition, std::nullopt});
  std::sort(appended_.begin(), appended_.end());
  appended_.erase(std::unique(appended_.begin(), appended_.end()), appended_.end());
  for (const TopicPartition& place : appended_) {
    auto found = state_.topics->find(place.topic);
    if (found == state_.topics->end()) continue;  // Removed later in the same group.
    const auto& log = partitions_.at(found->second->partition_ids[place.partition]);
    moved.push_back({place, log->high_watermark});
  }
  PartitionTable::Changes changes;
  changes.reserve(partitions_.size());
  for (auto& [id, log] : partitions_) changes.emplace_back(id, std::move(log));
  state_.partitions.apply(std::move(changes));
  for (auto& [log_class, segment] : open_) {
    if (segment)
      state_.open[log_class] = *std::move(segment);
    else
      state_.open.erase(log_class);
  }
  state_.next_segment = std::max(state_.next_segment, next_segment_);
  state_.garbage.resize(state_.garbage.size() - erased_);
  for (auto& garbage : garbage_) state_.garbage.push_back(std::move(garbage));
  state_.next_partition_id = std::max(state_.next_partition_id, next_partition_id_);
  drop();
  return moved;
}

void LogWriter::drop() {
  topics_.clear();
  partitions_.clear();
  pending_.clear();
  pending_bytes_ = 0;
  open_.clear();
  segment_rows_.clear();
  next_segment_ = 0;
  garbage_.clear();
  appended_.clear();
  removed_.clear();
  erased_ = 0;
  next_partition_id_ = 0;
}

Bytes segment_row(LogClass log_class, const OpenSegment& segment, std::optional<int64_t> closed_ms,
                  const std::function<const PartitionLog*(uint32_t)>& find) {
  proto::SegmentRow row;
  row.set_created_ms(segment.created_ms);
  row.set_open(!closed_ms);
  if (closed_ms) row.set_closed_ms(*closed_ms);
  row.set_bytes(segment.bytes);
  std::vector<uint32_t> members(segment.members->begin(),
                                segment.members->begin() + static_cast<ptrdiff_t>(segment.member_count));
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  for (uint32_t id : members) {
    const PartitionLog* log = find(id);
    if (log == nullptr) continue;
    for (size_t i = 0; i < log->ranges(); ++i) {
      const SegmentRange& range = log->range(i);
      if (range.log_class != log_class || range.segment != segment.number) continue;
      auto* out = row.add_ranges();
      out->set_partition(id);
      out->set_first_offset(range.first_offset);
      out->set_next_offset(range.next_offset);
      out->set_max_timestamp_ms(range.max_timestamp_ms);
      out->set_bytes(range.bytes);
    }
  }
  return row.SerializeAsString();
}

}  // namespace millrace::bus
