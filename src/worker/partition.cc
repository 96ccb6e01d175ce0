#include "worker/partition.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "proto/bus.pb.h"
#include "proto/worker.pb.h"
#include "worker/lease.h"

namespace millrace::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Of what is no fault of the input: a full queue, a lease that is contended, a read error.
constexpr milliseconds kMinPause{5}, kMaxPause{1000};
/// A draft whose conditions fail is made anew so often in a row; then it counts as failed.
constexpr uint32_t kMaxConflicts = 16;
/// The wall clock may step forward, and a wait that has begun does not notice.
constexpr nanoseconds kMaxClockWait = std::chrono::seconds(1);

bool is_too_large(const Error& error) {
  return error.code == "COMMIT_TOO_LARGE" || error.code == "MESSAGE_TOO_LARGE";
}

/// Runs what a processor's author wrote, who may throw anything. What it threw; nullopt when it did not. The drill's
/// kill passes.
template <typename Fn>
std::optional<std::string> thrown_by(Fn&& fn) {
  try {
    fn();
    return std::nullopt;
  } catch (const WorkerKilled&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

}  // namespace

Partition::Partition(std::shared_ptr<Context> context, WorkerId worker, Task task, Callbacks callbacks)
    : context_(std::move(context)),
      worker_(worker),
      task_(std::move(task)),
      home_(task_.processor->home(task_.partition)),
      callbacks_(std::move(callbacks)),
      builder_(*context_, task_, home_),
      timers_(home_),
      parking_(home_),
      record_limit_(context_->options.batch_records),
      timer_limit_(context_->options.timers_per_step) {
  enter(Phase::kAcquire);
}

Partition::~Partition() = default;

void Partition::enter(Phase phase) {
  phase_ = phase;
  using State = PartitionStatus::State;
  State state = State::kRunning;
  if (phase == Phase::kAcquire || phase == Phase::kAcquiring || phase == Phase::kLoad) state = State::kAcquiring;
  if (phase == Phase::kBackOff) state = State::kBackingOff;
  if (phase == Phase::kStopped) state = State::kStopped;
  if (state == State::kRunning && (is_full_ || timers_wait_)) state = State::kFull;
  task_.board->change([&](PartitionStatus& status) {
    if (status.worker == worker_) status.state = state;
  });
}

bool Partition::is_runnable() const {
  switch (phase_) {
    case Phase::kAcquire:
    case Phase::kLoad:
    case Phase::kRun:
      return true;
    case Phase::kIdle:
      return is_woken_ || wait() == nanoseconds(0);
    case Phase::kBackOff:
      return wait() == nanoseconds(0);
    case Phase::kAcquiring:
    case Phase::kCommitting:
    case Phase::kStopped:
      break;
  }
  return false;
}

std::optional<nanoseconds> Partition::wait() const {
  if (phase_ == Phase::kBackOff) return nanoseconds(std::max<int64_t>(0, resume_at_ns_ - context_->clock.steady_ns()));
  if (phase_ != Phase::kIdle) return std::nullopt;
  // One that waits for room is woken by the next attempt of what is parked.
  auto due = timers_wait_ ? std::nullopt : timers_.next_due();
  if (auto parked = parking_.next_due()) due = std::min(due.value_or(*parked), *parked);
  if (!due) return std::nullopt;
  const int64_t left = *due - context_->clock.wall_ms();
  if (left <= 0) return nanoseconds(0);
  return std::min<nanoseconds>(kMaxClockWait, milliseconds(std::min<int64_t>(left, 60'000)));
}

void Partition::turn() {
  switch (phase_) {
    case Phase::kAcquire:
      return acquire();
    case Phase::kLoad:
      return load();
    case Phase::kBackOff:
      return enter(after_backoff_);
    case Phase::kRun:
    case Phase::kIdle:
      return run();
    default:
      return;
  }
}

void Partition::acquire() {
  instance_.reset();
  watch_.reset();
  auto view = context_->log.view();
  if (!view) return stop({ErrorKind::kUnavailable, "STOPPING", "the log is closed"});
  auto lease = read_lease(*view, home_);
  if (!lease) return back_off(Phase::kAcquire, lease.error());
  epoch_ = lease->epoch + 1;
  bus::Commit commit = acquire_lease(home_, *lease, fmt::format("worker-{}", worker_));
  commit.done = callbacks_.answered;
  enter(Phase::kAcquiring);
  context_->log.submit(std::move(commit));
}

void Partition::load() {
  auto view = context_->log.view();
  if (!view) return stop({ErrorKind::kUnavailable, "STOPPING", "the log is closed"});
  auto loaded = [&]() -> Status {
    positions_.clear();
    for (const InputPartition& input : task_.inputs) {
      auto row = view->get(store::Table::kGroups,
                           bus::offset_key(home_, {std::string(task_.processor->name()), input.from, 0}));
      if (!row) return tl::unexpected(std::move(row.error()));
      proto::OffsetRow offset;
      if (*row && !offset.ParseFromString((*row)->value))
        return fail(ErrorKind::kCorruption, "INVALID_OFFSET_ROW",
                    fmt::format("{}: the offset of topic '{}' cannot be read", task_.name(), input.topic));
      auto state = view->partition(input.from);
      if (!state) return bus::unknown_partition(input.from);
      positions_.push_back(*row ? offset.next_offset() : state->log_start);
    }
    timers_ = TimerQueue(home_);
    parking_ = Parking(home_);
    MILLRACE_TRY(parking_.load(*view));
    Status made;
    const auto thrown = thrown_by([&] {
      instance_ = task_.processor->make(task_.partition, epoch_);
      made = instance_->load(*view);
    });
    if (thrown) return fail(ErrorKind::kInternal, "EXCEPTION", fmt::format("{}: {}", task_.name(), *thrown));
    return made;
  }();
  if (!loaded) {
    if (loaded.error().code == "UNKNOWN_TOPIC_OR_PARTITION") return stop(loaded.error());
    return back_off(Phase::kLoad, loaded.error());
  }
  failed_records_.clear();
  failed_timer_.reset();
  failed_retry_.reset();
  is_full_ = false;
  timers_wait_ = false;
  backoff_ = milliseconds(0);
  enter(Phase::kRun);
  show(view.get());
}

void Partition::run() {
  is_woken_ = false;
  phase_ = Phase::kRun;
  watch_.reset();
  auto view = context_->log.view();
  if (!view) return stop({ErrorKind::kUnavailable, "STOPPING", "the log is closed"});
  using Planner = Result<bool> (Partition::*)(const bus::View&, Plan&);
  static constexpr Planner kPlanners[] = {&Partition::plan_retry, &Partition::plan_timers, &Partition::plan_records};
  // In turn, so that none of the three keeps the others from running.
  for (int i = 0; i < 3; ++i) {
    const int kind = (next_kind_ + i) % 3;
    Plan plan;
    plan.kind = static_cast<Plan::Kind>(kind);
    plan.next_number = parking_.next_number();
    auto planned = (this->*kPlanners[kind])(*view, plan);
    if (!planned) {
      const Error& error = planned.error();
      if (error.kind == ErrorKind::kIo) return back_off(Phase::kRun, error);
      return stop(error);
    }
    if (!*planned) continue;
    next_kind_ = (kind + 1) % 3;
    return execute(*view, std::move(plan));
  }
  idle(*view);
}

void Partition::idle(const bus::View& view) {
  enter(Phase::kIdle);
  show(&view);
  if (is_full_) return;  // The next attempt of what is parked wakes it.
  std::vector<bus::WatchedOffset> offsets;
  for (size_t i = 0; i < task_.inputs.size(); ++i) offsets.push_back({task_.inputs[i].from, positions_[i]});
  auto watch = context_->log.watch(std::move(offsets), callbacks_.woken);
  if (!watch) return back_off(Phase::kRun, watch.error());
  watch_ = *std::move(watch);
}

void Partition::execute(const bus::View& view, Plan plan) {
  show(&view);
  fault_point(FaultPoints::Point::kBeforeStep);
  StepDraft draft;
  if (plan.for_domain()) {
    const int64_t began = context_->clock.steady_ns();
    StepInput input{view, plan.records, plan.timers, context_->clock.wall_ms()};
    StepResult result;
    if (auto thrown = thrown_by([&] { result = instance_->step(input); }))
      result = tl::unexpected(StepFailure({ErrorKind::kInternal, "EXCEPTION", *std::move(thrown)}));
    context_->stats.step_ns.record(static_cast<uint64_t>(context_->clock.steady_ns() - began));
    plan.has_stepped = true;
    if (!result) return failed(plan, std::move(result.error()));
    draft = *std::move(result);
    // A timer that failed and waits for its next attempt can be cancelled, or set anew, like any other.
    for (const bus::TimerChange& change : draft.timers)
      if (auto number = parking_.find_timer(change.due_ms, change.id)) plan.unparked.push_back(*number);
  }
  auto commit = builder_.build(plan, std::move(draft), epoch_);
  if (!commit) return refused(plan, commit.error());
  commit->done = callbacks_.answered;
  fault_point(FaultPoints::Point::kBeforeCommit);
  in_flight_ = std::move(plan);
  enter(Phase::kCommitting);
  context_->log.submit(*std::move(commit));
  fault_point(FaultPoints::Point::kAfterCommit);
}

void Partition::answered(bus::CommitResult result) {
  if (phase_ == Phase::kAcquiring) {
    if (result) {
      ++context_->stats.acquired;
      return enter(Phase::kLoad);
    }
    // Somebody was quicker: the owner before with its release, or a worker that hung while it took the lease.
    if (result.error().kind == ErrorKind::kConflict) return enter(Phase::kAcquire);
    if (result.error().kind == ErrorKind::kUnknown) return stop(result.error());
    return back_off(Phase::kAcquire, result.error());
  }
  if (phase_ != Phase::kCommitting) return;
  Plan plan = std::move(in_flight_);
  in_flight_ = Plan{};
  enter(Phase::kRun);
  if (result) return accept(plan, *result);
  refused(plan, result.error());
}

void Partition::drop(const Plan& plan) {
  if (!plan.has_stepped) return;
  if (const auto thrown = thrown_by([&] { instance_->dropped(); })) {
    spdlog::error("{}: dropped() threw: {}", task_.name(), *thrown);
    phase_ = Phase::kAcquire;  // Its caches are not to be trusted.
  }
}

void Partition::accept(Plan& plan, const bus::CommitReceipt& receipt) {
  WorkerStats& stats = context_->stats;
  const int64_t now = context_->clock.wall_ms();
  for (const auto& [input, next] : plan.positions) {
    positions_[input] = next;
    const std::string& topic = task_.inputs[input].topic;
    std::erase_if(failed_records_, [&](auto& f) { return f.first.first == topic && f.first.second < next; });
  }
  for (const DueTimer& timer : plan.timers)
    stats.timer_lateness_ns.record(static_cast<uint64_t>(std::max<int64_t>(0, now - timer.due_ms)) * 1'000'000);
  timers_.committed(plan.fired, plan.timer_changes);
  for (Plan::Row& row : plan.parked) parking_.put(std::move(row.parked));
  for (uint64_t number : plan.unparked) parking_.erase(number);
  if (plan.kind == Plan::Kind::kRetry) failed_retry_.reset();
  if (failed_timer_ && !plan.fired.empty() && plan.fired.back().key >= failed_timer_->first.key) failed_timer_.reset();
  record_limit_ = std::min(context_->options.batch_records, record_limit_ * 2);
  timer_limit_ = std::min(context_->options.timers_per_step, timer_limit_ * 2);
  ++stats.steps;
  stats.records += plan.records.size();
  stats.timers_fired += plan.fired.size();
  stats.dead_letters += plan.dead_letters.size();
  if (!plan.unparked.empty()) is_full_ = false;
  conflicts_ = 0;
  omit_values_ = false;
  backoff_ = milliseconds(0);
  task_.board->change([&](PartitionStatus& status) { status.dead_letters += plan.dead_letters.size(); });
  if (!plan.has_stepped) return;
  if (const auto thrown = thrown_by([&] { instance_->committed(receipt); })) {
    spdlog::error("{}: committed() threw: {}", task_.name(), *thrown);
    enter(Phase::kAcquire);
  }
}

void Partition::refused(const Plan& plan, const Error& error) {
  if (error.kind == ErrorKind::kFenced) return enter(Phase::kAcquire);
  if (error.kind == ErrorKind::kConflict && ++conflicts_ <= kMaxConflicts) return drop(plan);
  if (error.kind == ErrorKind::kUnknown || error.code == "STOPPING" || error.code == "STORE_FAILED") return stop(error);
  if (error.kind == ErrorKind::kExhausted || error.kind == ErrorKind::kUnavailable || error.kind == ErrorKind::kIo) {
    drop(plan);
    return back_off(Phase::kRun, error);
  }
  if (error.code == "UNKNOWN_TOPIC_OR_PARTITION" && !plan.dead_letters.empty()) return stop(error);
  if (!plan.dead_letters.empty() && is_too_large(error) && !omit_values_) {
    omit_values_ = true;
    return drop(plan);
  }
  if (!plan.has_stepped) return stop(error);
  conflicts_ = 0;
  StepFailure failure(error);
  // A smaller batch may fit; what does not fit alone never will.
  if (plan.records.size() + plan.timers.size() > 1) failure.retry = true;
  failed(plan, std::move(failure));
}

void Partition::failed(const Plan& plan, StepFailure failure) {
  ++context_->stats.failures;
  drop(plan);
  task_.board->change([&](PartitionStatus& status) { status.problem = to_string(failure.error); });
  if (phase_ != Phase::kAcquire) enter(Phase::kRun);
  next_kind_ = static_cast<int>(plan.kind);
  if (plan.kind == Plan::Kind::kRetry) {
    failed_retry_.emplace(plan.unparked.front(), std::move(failure));
  } else if (plan.kind == Plan::Kind::kTimers) {
    if (plan.timers.size() > 1)
      timer_limit_ = plan.timers.size() / 2;
    else
      failed_timer_.emplace(plan.fired.front(), std::move(failure));
  } else {
    size_t index = failure.record.value_or(0);
    if (plan.records.size() > 1 && (!failure.record || index >= plan.records.size())) {
      record_limit_ = plan.records.size() / 2;
      return;
    }
    const Record& record = plan.records[index];
    failed_records_.insert_or_assign({std::string(record.topic), record.offset}, std::move(failure));
  }
}

void Partition::back_off(Phase then, const Error& error) {
  backoff_ = std::clamp(backoff_ * 2, kMinPause, kMaxPause);
  if (backoff_ == kMinPause && error.kind != ErrorKind::kExhausted && error.kind != ErrorKind::kConflict)
    spdlog::warn("{}: {}", task_.name(), to_string(error));
  resume_at_ns_ = context_->clock.steady_ns() + nanoseconds(backoff_).count();
  after_backoff_ = then;
  task_.board->change([&](PartitionStatus& status) {
    if (status.worker == worker_) status.problem = to_string(error);
  });
  enter(Phase::kBackOff);
}

void Partition::stop(const Error& error) {
  spdlog::error("{} stops: {}", task_.name(), to_string(error));
  watch_.reset();
  task_.board->change([&](PartitionStatus& status) {
    if (status.worker == worker_) status.problem = to_string(error);
  });
  enter(Phase::kStopped);
  if (error.code == "UNKNOWN_TOPIC_OR_PARTITION") context_->mailbox.look_at_topics();
}

void Partition::release() {
  const bool holds = phase_ == Phase::kRun || phase_ == Phase::kIdle || phase_ == Phase::kLoad ||
                     (phase_ == Phase::kBackOff && after_backoff_ != Phase::kAcquire);
  if (holds) context_->log.submit(release_lease(home_, epoch_));
}

void Partition::show(const bus::View* view) {
  task_.board->change([&](PartitionStatus& status) {
    if (status.worker != worker_) return;
    status.epoch = epoch_;
    status.parked = parking_.count();
    status.inputs.resize(task_.inputs.size());
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      auto state = view->partition(task_.inputs[i].from);
      status.inputs[i] = {task_.inputs[i].topic, positions_[i], state ? state->high_watermark : positions_[i]};
    }
    if (!is_full_ && parking_.count() == 0) status.problem.clear();
  });
}

void Partition::fault_point(FaultPoints::Point point) {
  if (context_->faults != nullptr) context_->faults->at(point, worker_, task_.processor->name(), task_.partition);
}

}  // namespace millrace::worker
