#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "bus/log_keeper.h"
#include "bus/record_batch.h"

/// LogKeeper's scrub: every record batch's CRC, and every row of the other tables, which RocksDB checks as it reads.
namespace millrace::bus {
namespace {

bool is_of_the_log(store::Table table) {
  return table == store::Table::kLog || table == store::Table::kLogCompacted;
}

}  // namespace

Status LogKeeper::scrub_once() {
  ScrubPlace place;
  for (;;) {
    auto more = scrub_some(place);
    if (!more) return tl::unexpected(std::move(more.error()));
    if (!*more) return {};
  }
}

Result<bool> LogKeeper::scrub_some(ScrubPlace& place) {
  auto view = log_.store_view();
  if (!view) return false;
  auto more = place.logs_done ? scrub_table(place, *view) : scrub_log(place, *view);
  view.reset();
  if (!more) return more;
  stats_.scrubbed_bytes.fetch_add(place.bytes, std::memory_order_relaxed);
  if (!*more) stats_.scrub_rounds.fetch_add(1, std::memory_order_relaxed);
  MILLRACE_TRY(spend(std::exchange(place.bytes, 0), options_.scrub_bytes_per_second));
  return more;
}

/// Partitions in the order of their topics' ids, which stays while topics come and go.
Result<bool> LogKeeper::scrub_log(ScrubPlace& place, const StoreView& view) {
  std::optional<TopicPartition> at;
  for (const auto& [id, topic] : view.topics()) {
    const uint32_t number = id == place.partition.topic ? place.partition.partition : 0;
    if (id < place.partition.topic || number >= topic->partitions()) continue;
    if (!at || id < at->topic) at = TopicPartition{id, number};
  }
  if (!at) {
    place.logs_done = true;
    return true;
  }
  if (*at != place.partition) place.offset = 0;
  place.partition = *at;
  const PartitionState state = *view.partition(*at);
  const uint64_t offset = std::max(place.offset, state.log_start);
  auto next_partition = [&] {
    ++place.partition.partition;
    place.offset = 0;
    return true;
  };
  if (offset >= state.high_watermark) return next_partition();
  auto batches = view.fetch(*at, offset, kChunkBytes);
  if (!batches) {
    // What lies behind the damage in this partition cannot be reached from here; readers that know their offset can.
    if (note_damage(batches.error())) return next_partition();
    return tl::unexpected(std::move(batches.error()));
  }
  for (const Bytes& batch : *batches) {
    place.bytes += batch.size();
    auto info = check_batch(batch);
    if (!info)
      note_damage({ErrorKind::kCorruption, "LOG_DAMAGED",
                   fmt::format("{}, near offset {}: {}", describe(*at), place.offset, info.error().message)});
    else if (auto horizon = info->delete_horizon_ms())
      note_horizon(view.topics().at(at->topic)->partition_ids[at->partition], *horizon);
    if (auto read = read_batch_info(batch)) place.offset = static_cast<uint64_t>(read->next_offset());
  }
  return true;
}

Result<bool> LogKeeper::scrub_table(ScrubPlace& place, const StoreView& view) {
  constexpr auto kTables = static_cast<size_t>(store::Table::kCount);
  while (place.table < kTables && is_of_the_log(static_cast<store::Table>(place.table))) ++place.table;
  if (place.table >= kTables) return false;
  const auto table = static_cast<store::Table>(place.table);
  auto rows = view.snapshot().scan(table, place.key, "");
  for (rows->seek(place.key); rows->valid() && place.bytes < kChunkBytes; rows->next()) {
    place.bytes += rows->key().size() + rows->value().size();
    place.key = Bytes(rows->key()) + '\0';
  }
  if (rows->valid()) return true;
  if (auto status = rows->status(); !status && !note_damage(status.error()))
    return tl::unexpected(std::move(status.error()));
  ++place.table;
  place.key.clear();
  return true;
}

}  // namespace millrace::bus
