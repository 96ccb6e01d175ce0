#include "worker/step.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "proto/worker.pb.h"
#include "worker/lease.h"
#include "worker/timers.h"

namespace millrace::worker {
namespace {

using store::Table;

/// An error's message may hold whatever a domain puts into it.
constexpr size_t kMaxMessageBytes = 1024;

}  // namespace

bool Plan::parks(const Bytes& key) const {
  return std::any_of(parked.begin(), parked.end(), [&](const Row& row) { return row.parked.key == key; });
}

size_t Plan::parked_bytes() const {
  size_t bytes = 0;
  for (const Row& row : parked) bytes += row.value.size();
  return bytes;
}

StepBuilder::StepBuilder(const Context& context, const Task& task, bus::Home home)
    : context_(context), task_(task), home_(std::move(home)) {}

bool StepBuilder::gives_up(const StepFailure& failure) const {
  return !failure.retry || context_.options.max_attempts <= 1;
}

void StepBuilder::fail_row(proto::ParkedRow& row, const StepFailure& failure) const {
  const int64_t now = context_.clock.wall_ms();
  row.set_attempts(row.attempts() + 1);
  if (row.first_failure_ms() == 0) row.set_first_failure_ms(now);
  // Doubled with each attempt.
  auto wait = context_.options.backoff_min;
  for (uint32_t i = 1; i < row.attempts() && wait < context_.options.backoff_max; ++i) wait *= 2;
  row.set_due_ms(now + std::min(wait, context_.options.backoff_max).count());
  row.set_error_code(std::string(failure.error.code));
  row.set_error_message(failure.error.message.substr(0, kMaxMessageBytes));
}

const InputPartition& StepBuilder::input_of(const proto::ParkedRow& row) const {
  for (const InputPartition& input : task_.inputs)
    if (input.topic == row.topic()) return input;
  return task_.inputs.front();
}

void StepBuilder::settle(uint64_t number, const proto::ParkedRow& row, bool give_up, Plan& plan,
                         bool with_value) const {
  if (give_up) {
    auto fetched = read_single(row.record());
    MILLRACE_ASSERT(fetched.has_value(), "a record that was read can be read again");
    plan.dead_letters.push_back({input_of(row).dead_letters, dead_letter(row, fetched->records.front(), with_value)});
    spdlog::warn("{}: given up after {} attempts: {} (topic '{}', offset {}): {}: {}", task_.name(), row.attempts(),
                 row.topic().empty() ? "timer" : "record", row.topic(), row.offset(), row.error_code(),
                 row.error_message());
    return;
  }
  auto parked = Parking::parse(number, row);
  MILLRACE_ASSERT(parked.has_value(), "a row that was made can be read");
  plan.parked.push_back({*std::move(parked), row.SerializeAsString()});
}

void StepBuilder::park(const InputPartition& input, const bus::RecordView& record, const StepFailure* failure,
                       Plan& plan, bool with_value) const {
  proto::ParkedRow row;
  row.set_record(single_batch(record));
  row.set_topic(input.topic);
  row.set_partition(input.from.partition);
  row.set_offset(static_cast<uint64_t>(record.offset));
  if (failure != nullptr) fail_row(row, *failure);
  const bool give_up = failure != nullptr && gives_up(*failure);
  settle(plan.next_number, row, give_up, plan, with_value);
  if (!give_up) ++plan.next_number;
}

void StepBuilder::park_timer(const DueTimer& timer, const StepFailure& failure, Plan& plan, bool with_value) const {
  bus::RecordView record;
  record.value = timer.payload;
  record.timestamp_ms = timer.due_ms;
  proto::ParkedRow row;
  row.set_record(single_batch(record));
  row.set_partition(task_.partition);
  row.set_timer_due_ms(timer.due_ms);
  row.set_timer_id(timer.id);
  fail_row(row, failure);
  const bool give_up = !failure.retry || row.attempts() >= context_.options.max_attempts;
  settle(plan.next_number, row, give_up, plan, with_value);
  if (!give_up) ++plan.next_number;
}

void StepBuilder::failed_again(const Parked& parked, proto::ParkedRow row, const StepFailure& failure, Plan& plan,
                               bool with_value) const {
  fail_row(row, failure);
  const bool give_up = !failure.retry || row.attempts() >= context_.options.max_attempts;
  settle(parked.number, row, give_up, plan, with_value);
  if (give_up) plan.unparked.push_back(parked.number);
}

Result<bus::Commit> StepBuilder::build(Plan& plan, StepDraft draft, uint64_t epoch) const {
  bus::Commit commit(home_);
  commit.fences.push_back(fence_of(home_, epoch));
  commit.conditions = std::move(draft.conditions);
  commit.state = std::move(draft.state);
  commit.appends = std::move(draft.appends);
  for (const bus::TimerChange& change : draft.timers) MILLRACE_TRY(TimerQueue::check(change));
  plan.timer_changes = std::move(draft.timers);
  for (const bus::Condition& timer : plan.fired) {
    commit.conditions.push_back(timer);
    ByteView rest = ByteView(timer.key).substr(home_.prefix().size());
    commit.timers.push_back(
        {static_cast<int64_t>(load_be<uint64_t>(rest.data())), Bytes(rest.substr(sizeof(uint64_t))), std::nullopt});
  }
  // Behind the fired ones: a step may set again what it was fired by.
  commit.timers.insert(commit.timers.end(), plan.timer_changes.begin(), plan.timer_changes.end());
  for (const auto& [input, next] : plan.positions)
    commit.offsets.push_back({std::string(task_.processor->name()), task_.inputs[input].from, next});
  const Parking keys(home_);
  for (const Plan::Row& row : plan.parked)
    commit.state.push_back({Table::kMeta, keys.key_of(row.parked.number), row.value});
  for (uint64_t number : plan.unparked) commit.state.push_back({Table::kMeta, keys.key_of(number), std::nullopt});
  for (const bus::Append& letter : plan.dead_letters) commit.appends.push_back(letter);
  if (size_t bytes = bus::size_of(commit); bytes > context_.options.max_commit_bytes)
    return fail(ErrorKind::kInvalidArgument, "COMMIT_TOO_LARGE",
                fmt::format("{}: the step's commit has {} bytes; at most {} are taken", task_.name(), bytes,
                            context_.options.max_commit_bytes));
  return commit;
}

}  // namespace millrace::worker
