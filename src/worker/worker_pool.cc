#include "worker/worker_pool.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

#include "base/thread.h"
#include "worker/topics.h"

namespace millrace::worker {
namespace {

using std::chrono::nanoseconds;

/// How often topics that are missing are looked for.
constexpr nanoseconds kLookForTopics = std::chrono::seconds(1);
/// What a dead letter has beside the record: headers.
constexpr int64_t kDeadLetterRoom = 8 << 10;

}  // namespace

Result<std::unique_ptr<WorkerPool>> WorkerPool::start(bus::CommitLog& log, const Clock& clock, Health& health,
                                                      std::vector<std::shared_ptr<const Processor>> processors,
                                                      Options options, FaultPoints* faults) {
  std::set<std::string> names;
  for (const auto& processor : processors)
    if (!names.insert(std::string(processor->name())).second)
      return fail(ErrorKind::kInvalidArgument, "DUPLICATE_PROCESSOR",
                  fmt::format("there are two processors named '{}'", processor->name()));
  auto context = std::make_shared<Context>(log, clock, options, faults);
  return std::unique_ptr<WorkerPool>(new WorkerPool(std::move(context), health, std::move(processors)));
}

WorkerPool::WorkerPool(std::shared_ptr<Context> context, Health& health,
                       std::vector<std::shared_ptr<const Processor>> processors)
    : context_(std::move(context)) {
  for (auto& processor : processors) sources_.push_back({std::move(processor), {}, {}, "STARTING"});
  heartbeat_ = health.watch("workers", [context = context_] { context->mailbox.nudge(); });
  if (sources_.empty()) {
    // Nothing to do for anybody: health alone is answered.
    supervisor_ = std::thread([this] { supervise(); });
    return;
  }
  resolve();
  {
    MutexLock lock(mutex_);
    for (uint32_t i = 0; i < context_->options.threads; ++i) add_worker();
    rebalance();
  }
  supervisor_ = std::thread([this] { supervise(); });
}

WorkerPool::~WorkerPool() {
  stop(std::chrono::hours(24));
}

void WorkerPool::supervise() {
  name_this_thread("workers");
  int64_t look_at_ns = 0;
  while (!ends_.load(std::memory_order_acquire)) {
    nanoseconds wait = look_for_hung();
    if (waits_for_topics()) wait = std::min(wait, kLookForTopics);
    Mailbox::Mail mail = context_->mailbox.take(wait);
    take_ended(mail);
    const int64_t now = SystemClock::instance().steady_ns();
    if (mail.look_at_topics || (waits_for_topics() && now >= look_at_ns)) {
      resolve();
      MutexLock lock(mutex_);
      rebalance();
      look_at_ns = now + kLookForTopics.count();
    }
    MutexLock lock(mutex_);
    if (stuck() <= context_->options.max_stuck) heartbeat_->beat();
  }
}

/// What is idle now cannot be overdue before a whole deadline has passed, so looking again then is soon enough.
nanoseconds WorkerPool::look_for_hung() {
  const int64_t now = context_->clock.steady_ns();
  const int64_t deadline = context_->options.step_deadline.count();
  int64_t wait = deadline;
  MutexLock lock(mutex_);
  std::vector<WorkerId> hung;
  for (const auto& [id, member] : members_) {
    const int64_t began = member.worker->turn_began();
    if (began == 0 || member.state == WorkerStatus::State::kStuck) continue;
    if (now - began >= deadline)
      hung.push_back(id);
    else
      wait = std::min(wait, began + deadline - now);
  }
  for (WorkerId id : hung) {
    const bool was_leaving = members_.at(id).state == WorkerStatus::State::kLeaving;
    ++context_->stats.hung;
    spdlog::error("worker-{} hangs at {} for {} ms: its partitions go to others", id, members_.at(id).worker->turn_of(),
                  deadline / 1'000'000);
    if (was_leaving)
      members_.at(id).state = WorkerStatus::State::kStuck;
    else
      replace(id, WorkerStatus::State::kStuck);
  }
  return nanoseconds(std::max<int64_t>(wait, 1'000'000));
}

void WorkerPool::take_ended(const Mailbox::Mail& mail) {
  for (const auto& [id, in_order] : mail.ended) {
    std::shared_ptr<Worker> worker;
    {
      MutexLock lock(mutex_);
      auto found = members_.find(id);
      if (found == members_.end()) continue;
      worker = found->second.worker;
      if (found->second.state == WorkerStatus::State::kRunning && !stopping_) {
        ++context_->stats.died;
        replace(id, WorkerStatus::State::kLeaving);
      }
      if (found->second.state == WorkerStatus::State::kStuck) spdlog::warn("worker-{} came back, and ends", id);
      members_.erase(id);
    }
    worker->join();
  }
}

void WorkerPool::add_worker() {
  auto worker = std::make_shared<Worker>(context_, next_id_++);
  worker->start();
  members_.emplace(worker->id(), Member{worker, WorkerStatus::State::kRunning});
}

/// The newcomer takes what the leaving one had, and nothing else moves.
void WorkerPool::replace(WorkerId id, WorkerStatus::State state) {
  Member& member = members_.at(id);
  member.state = state;
  add_worker();
  rebalance();
  member.worker->end(false);
}

void WorkerPool::rebalance() {
  std::vector<WorkerId> running;
  for (const auto& [id, member] : members_)
    if (member.state == WorkerStatus::State::kRunning) running.push_back(id);
  if (running.empty() || stopping_) return;
  std::vector<std::optional<WorkerId>> owners;
  for (const auto& [name, task] : tasks_) owners.push_back(task.owner);
  const std::vector<WorkerId> assigned = assign(owners, running);
  size_t i = 0;
  for (auto& [name, task] : tasks_) {
    const WorkerId worker = assigned[i++];
    if (task.owner == worker) continue;
    if (task.owner)
      if (auto old = members_.find(*task.owner); old != members_.end()) old->second.worker->disown(name);
    task.owner = worker;
    task.task.board->change([&](PartitionStatus& status) {
      status.worker = worker;
      status.state = PartitionStatus::State::kWaiting;
      status.dead_letters = 0;
    });
    members_.at(worker).worker->own(task.task);
  }
}

bool WorkerPool::waits_for_topics() const {
  MutexLock lock(mutex_);
  return std::any_of(sources_.begin(), sources_.end(), [](const Source& source) { return !source.problem.empty(); });
}

void WorkerPool::resolve() {
  std::vector<std::shared_ptr<const Processor>> processors;
  {
    MutexLock lock(mutex_);
    for (const Source& source : sources_) processors.push_back(source.processor);
  }
  for (size_t i = 0; i < processors.size(); ++i) {
    std::vector<bus::Topic> inputs;
    auto tasks = resolve(*processors[i], inputs);
    MutexLock lock(mutex_);
    if (stopping_) return;
    Source& source = sources_[i];
    const std::string problem = tasks ? "" : to_string(tasks.error());
    if (problem != source.problem && !problem.empty())
      spdlog::warn("processor {} waits: {}", processors[i]->name(), problem);
    source.problem = problem;
    const bool same = std::equal(inputs.begin(), inputs.end(), source.inputs.begin(), source.inputs.end(),
                                 [](const auto& a, const auto& b) { return a.id == b.id; });
    std::vector<Uuid> dead_letters;
    if (tasks && !tasks->empty())
      for (const InputPartition& input : tasks->front().inputs) dead_letters.push_back(input.dead_letters.topic);
    if (tasks && same && dead_letters == source.dead_letters) continue;
    source.dead_letters = std::move(dead_letters);
    source.inputs = tasks ? inputs : std::vector<bus::Topic>();
    std::erase_if(tasks_, [&](const auto& entry) NO_THREAD_SAFETY_ANALYSIS {
      if (entry.second.task.processor != processors[i]) return false;
      if (auto owner = members_.find(entry.second.owner.value_or(0)); owner != members_.end())
        owner->second.worker->disown(entry.first);
      return true;
    });
    if (!tasks) continue;
    for (Task& task : *tasks) {
      task.processor = processors[i];
      std::string name = task.name();
      tasks_[name] = {std::move(task), std::nullopt};
    }
  }
}

Result<std::vector<Task>> WorkerPool::resolve(const Processor& processor, std::vector<bus::Topic>& inputs) {
  auto view = context_->log.view();
  if (!view) return fail(ErrorKind::kUnavailable, "STOPPING", "the log is closed");
  const std::vector<std::string> names = processor.inputs();
  std::vector<bus::Topic> dead_letters;
  for (const std::string& name : names) {
    auto topic = find_topic(*view, name);
    if (!topic) return tl::unexpected(std::move(topic.error()));
    inputs.push_back(*topic);
    if (topic->partitions() != inputs.front().partitions())
      return fail(ErrorKind::kInvalidArgument, "NOT_COPARTITIONED",
                  fmt::format("topic '{}' has {} partitions, topic '{}' has {}", name, topic->partitions(),
                              names.front(), inputs.front().partitions()));
    const std::string letters = processor.dead_letter_topic(name);
    MILLRACE_TRY(ensure_topic(context_->log, context_->clock, letters, topic->partitions(), "delete",
                              topic->settings.max_message_bytes + kDeadLetterRoom));
    auto made = find_topic(*context_->log.view(), letters);
    if (!made) return tl::unexpected(std::move(made.error()));
    dead_letters.push_back(*std::move(made));
  }
  std::vector<Task> tasks;
  for (uint32_t partition = 0; partition < inputs.front().partitions(); ++partition) {
    Task task;
    task.partition = partition;
    for (size_t i = 0; i < inputs.size(); ++i)
      task.inputs.push_back(
          {names[i], {inputs[i].id, partition}, {dead_letters[i].id, partition % dead_letters[i].partitions()}});
    task.board = std::make_shared<StatusBoard>();
    task.board->change([&](PartitionStatus& status) {
      status.processor = processor.name();
      status.partition = partition;
    });
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Status WorkerPool::stop_worker(WorkerId id) {
  MutexLock lock(mutex_);
  if (stopping_) return fail(ErrorKind::kUnavailable, "STOPPING", "the workers are stopping");
  auto found = members_.find(id);
  if (found == members_.end() || found->second.state != WorkerStatus::State::kRunning)
    return fail(ErrorKind::kNotFound, "UNKNOWN_WORKER", fmt::format("there is no running worker {}", id));
  ++context_->stats.stopped;
  spdlog::info("worker-{} is stopped", id);
  replace(id, WorkerStatus::State::kLeaving);
  return {};
}

size_t WorkerPool::stuck() const {
  return static_cast<size_t>(std::count_if(members_.begin(), members_.end(), [](const auto& member) {
    return member.second.state == WorkerStatus::State::kStuck;
  }));
}

Status WorkerPool::ready() const {
  MutexLock lock(mutex_);
  if (stuck() > context_->options.max_stuck)
    return fail(ErrorKind::kUnavailable, "WORKERS_STUCK",
                fmt::format("{} workers hang; more than {} are too many", stuck(), context_->options.max_stuck));
  return {};
}

void WorkerPool::nudge() {
  {
    MutexLock lock(mutex_);
    for (auto& [id, member] : members_) member.worker->nudge();
  }
  context_->mailbox.look_at_topics();
}

PoolStatus WorkerPool::describe() const {
  PoolStatus status;
  MutexLock lock(mutex_);
  std::map<WorkerId, std::vector<PartitionStatus>> owned;
  for (const auto& [name, task] : tasks_)
    if (task.owner) owned[*task.owner].push_back(task.task.board->read());
  const int64_t now = context_->clock.steady_ns();
  for (const auto& [id, member] : members_) {
    WorkerStatus worker{id, member.state, "", 0, std::move(owned[id])};
    if (int64_t began = member.worker->turn_began(); began != 0) {
      worker.step = member.worker->turn_of();
      worker.step_age_ns = now - began;
    }
    status.workers.push_back(std::move(worker));
  }
  for (const Source& source : sources_)
    status.processors.push_back({std::string(source.processor->name()), source.problem});
  return status;
}

uint64_t WorkerPool::lag() const {
  uint64_t lag = 0;
  MutexLock lock(mutex_);
  for (const auto& [name, task] : tasks_) lag += task.task.board->read().lag();
  return lag;
}

size_t WorkerPool::stop(nanoseconds patience) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return members_.size();
    stopping_ = true;
    for (auto& [id, member] : members_) member.worker->end(member.state == WorkerStatus::State::kRunning);
  }
  ends_.store(true, std::memory_order_release);
  context_->mailbox.nudge();
  supervisor_.join();
  const int64_t end = SystemClock::instance().steady_ns() + patience.count();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (members_.empty()) return 0;
    }
    const int64_t left = end - SystemClock::instance().steady_ns();
    if (left <= 0) break;
    take_ended(context_->mailbox.take(nanoseconds(left)));
  }
  MutexLock lock(mutex_);
  for (auto& [id, member] : members_) {
    spdlog::error("worker-{} still hangs at {}", id, member.worker->turn_of());
    member.worker->detach();
  }
  return members_.size();
}

}  // namespace millrace::worker
