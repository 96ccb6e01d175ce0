#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "proto/worker.pb.h"
#include "worker/partition.h"

/// What the next step of a partition works on.
namespace millrace::worker {

Result<bool> Partition::plan_retry(const bus::View& view, Plan& plan) {
  const Parked* parked = parking_.due(context_->clock.wall_ms());
  if (parked == nullptr) return false;
  auto row = parking_.read(view, parked->number);
  if (!row) return tl::unexpected(std::move(row.error()));
  if (failed_retry_ && failed_retry_->first == parked->number) {
    builder_.failed_again(*parked, *std::move(row), failed_retry_->second, plan, !omit_values_);
    return true;
  }
  auto fetched = read_single(row->record());
  if (!fetched) return tl::unexpected(std::move(fetched.error()));
  plan.fetched.push_back(*std::move(fetched));
  bus::RecordView& record = plan.fetched.back().records.front();
  if (row->attempts() > 0) ++context_->stats.retries;
  plan.unparked.push_back(parked->number);
  if (parked->timer) {
    plan.timers.push_back({row->timer_due_ms(), row->timer_id(), Bytes(record.value.value_or("")), row->attempts()});
    return true;
  }
  record.offset = static_cast<int64_t>(row->offset());
  std::string_view topic = task_.inputs.front().topic;
  for (const InputPartition& input : task_.inputs)
    if (input.topic == row->topic()) topic = input.topic;
  plan.records.push_back({topic, row->offset(), row->attempts(), record});
  return true;
}

void Partition::tell_full() const {
  const std::string problem =
      fmt::format("PARKED_FULL: {} records of {} bytes wait for another attempt; no more are taken until one is gone",
                  parking_.count(), parking_.bytes());
  spdlog::warn("{}: {}", task_.name(), problem);
  task_.board->change([&](PartitionStatus& status) { status.problem = problem; });
}

Result<bool> Partition::plan_timers(const bus::View& view, Plan& plan) {
  const bool waited = std::exchange(timers_wait_, false);
  auto due = timers_.due(view, context_->clock.wall_ms(), failed_timer_ ? 1 : timer_limit_);
  if (!due) return tl::unexpected(std::move(due.error()));
  if (due->empty()) return false;
  if (failed_timer_ && failed_timer_->first.key == due->front().row.key &&
      failed_timer_->first.version == due->front().row.version) {
    const DueTimer& timer = due->front().timer;
    if (parking_.count() >= context_->options.max_parked) {
      timers_wait_ = true;
      if (!waited) tell_full();
      return false;
    }
    builder_.park_timer(timer, failed_timer_->second, plan, !omit_values_);
    plan.fired.push_back(due->front().row);
    return true;
  }
  for (TimerQueue::Due& timer : *due) {
    plan.timers.push_back(std::move(timer.timer));
    plan.fired.push_back(std::move(timer.row));
  }
  return true;
}

Result<bool> Partition::plan_records(const bus::View& view, Plan& plan) {
  const Options& options = context_->options;
  size_t records = record_limit_, bytes = options.batch_bytes;
  // Every input is the first one in turn.
  const size_t first = next_input_++ % task_.inputs.size();
  plan.fetched.reserve(task_.inputs.size());
  bool ends = false;
  for (size_t i = 0; i < task_.inputs.size() && records > 0 && !ends; ++i) {
    const size_t index = (first + i) % task_.inputs.size();
    const InputPartition& input = task_.inputs[index];
    auto fetched = fetch(view, index, records, bytes);
    if (!fetched) return tl::unexpected(std::move(fetched.error()));
    if (fetched->next_offset == positions_[index]) continue;
    plan.fetched.push_back(*std::move(fetched));
    const Fetched& source = plan.fetched.back();
    uint64_t next = source.next_offset;
    for (const bus::RecordView& record : source.records) {
      const Taken taken = take(input, record, plan);
      if (taken == Taken::kYes) continue;
      ends = true;
      plan.waits_for_room = taken == Taken::kNoRoom;
      next = static_cast<uint64_t>(record.offset) + (taken == Taken::kAsTheLast ? 1 : 0);
      break;
    }
    records -= std::min(records, source.records.size());
    for (const Bytes& batch : source.batches) bytes -= std::min(bytes, batch.size());
    if (next > positions_[index]) plan.positions.emplace_back(index, next);
  }
  const bool was_full = std::exchange(is_full_, plan.waits_for_room && plan.is_empty());
  if (is_full_ && !was_full) tell_full();
  return !plan.is_empty();
}

Partition::Taken Partition::take(const InputPartition& input, const bus::RecordView& record, Plan& plan) {
  const auto offset = static_cast<uint64_t>(record.offset);
  auto found = failed_records_.find({input.topic, offset});
  bool waits = false;
  if (record.key) {
    Bytes key(*record.key);
    waits = parking_.holds(key) || plan.parks(key);
  }
  if (found == failed_records_.end() && !waits) {
    plan.records.push_back({input.topic, offset, 0, record});
    return Taken::kYes;
  }
  const StepFailure* failure = waits ? nullptr : &found->second;
  const bool gives_up = failure != nullptr && builder_.gives_up(*failure);
  if (gives_up && !plan.is_empty()) return Taken::kNotYet;
  const Options& options = context_->options;
  const size_t bytes = bus::record_bytes_bound(record);
  if (!gives_up &&
      (parking_.count() + plan.parked.size() >= options.max_parked ||
       (parking_.bytes() + plan.parked_bytes() + bytes > options.max_parked_bytes && parking_.count() > 0)))
    return Taken::kNoRoom;
  builder_.park(input, record, failure, plan, !omit_values_);
  return gives_up ? Taken::kAsTheLast : Taken::kYes;
}

/// Retention may have been quicker than this partition, and an unclean start in async mode may have taken records back:
/// then it goes on at the nearest offset that there is, and says how many records it never saw.
Result<Fetched> Partition::fetch(const bus::View& view, size_t input, size_t max_records, size_t max_bytes) {
  const InputPartition& from = task_.inputs[input];
  auto fetched = fetch_records(view, from, positions_[input], max_records, max_bytes);
  if (fetched || fetched.error().code != "OFFSET_OUT_OF_RANGE") return fetched;
  auto state = view.partition(from.from);
  if (!state) return bus::unknown_partition(from.from);
  const uint64_t there = std::clamp(positions_[input], state->log_start, state->high_watermark);
  const uint64_t lost = there > positions_[input] ? there - positions_[input] : 0;
  ++context_->stats.gaps;
  context_->stats.records_lost += lost;
  spdlog::warn("{}: topic '{}' has offsets {} to {}, the position was {}: goes on at {}", task_.name(), from.topic,
               state->log_start, state->high_watermark, positions_[input], there);
  positions_[input] = there;
  return fetch_records(view, from, there, max_records, max_bytes);
}

}  // namespace millrace::worker
