#include "worker/worker.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/thread.h"

namespace millrace::worker {

struct Worker::Inbox {
  struct Content {
    std::vector<Task> own;
    std::vector<std::string> disown;
    std::vector<std::pair<uint64_t, bus::CommitResult>> answers;
    std::vector<uint64_t> woken;
    bool nudged = false, end = false, release = false;
    bool is_empty() const {
      return own.empty() && disown.empty() && answers.empty() && woken.empty() && !nudged && !end;
    }
  };

  template <typename Change>
  void change(Change&& change) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    change(content);
    changed.notify_one();
  }
  Content take(std::optional<std::chrono::nanoseconds> wait) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (content.is_empty() && !wait) changed.wait(mutex);
    if (content.is_empty() && wait && wait->count() > 0) changed.wait_for(mutex, *wait);
    return std::exchange(content, {});
  }

  Mutex mutex;
  CondVar changed;
  Content content GUARDED_BY(mutex);
};

Worker::Worker(std::shared_ptr<Context> context, WorkerId id)
    : context_(std::move(context)), id_(id), inbox_(std::make_shared<Inbox>()) {}

void Worker::start() {
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
}

void Worker::own(Task task) {
  inbox_->change([&](Inbox::Content& content) { content.own.push_back(std::move(task)); });
}

/// Takes back an own() that was not served as well.
void Worker::disown(std::string task) {
  inbox_->change([&](Inbox::Content& content) {
    std::erase_if(content.own, [&](const Task& owned) { return owned.name() == task; });
    content.disown.push_back(std::move(task));
  });
}

void Worker::end(bool release) {
  inbox_->change([&](Inbox::Content& content) {
    content.end = true;
    content.release = release;
  });
}

void Worker::nudge() {
  inbox_->change([](Inbox::Content& content) { content.nudged = true; });
}

std::string Worker::turn_of() const {
  MutexLock lock(turn_mutex_);
  return turn_of_;
}

void Worker::run() {
  name_this_thread(fmt::format("worker-{}", id_));
  try {
    while (serve()) take_turns();
  } catch (const WorkerKilled&) {
    spdlog::warn("worker-{} was killed", id_);
  } catch (const std::exception& error) {
    spdlog::error("worker-{} ends: {}", id_, error.what());
  }
  partitions_.clear();
  turn_began_.store(0, std::memory_order_release);
  context_->mailbox.worker_ended(id_, ends_in_order_);
}

/// Serves what came, after waiting for it if there is nothing else to do. False at the end.
bool Worker::serve() {
  std::optional<std::chrono::nanoseconds> wait;
  for (const auto& [token, partition] : partitions_) {
    auto mine = partition->is_runnable() ? std::chrono::nanoseconds(0) : partition->wait();
    if (mine) wait = std::min(wait.value_or(*mine), *mine);
  }
  Inbox::Content content = inbox_->take(wait);
  for (const std::string& task : content.disown)
    std::erase_if(partitions_, [&](const auto& entry) { return entry.second->task().name() == task; });
  for (Task& task : content.own) add(std::move(task));
  for (auto& [token, result] : content.answers)
    if (auto found = partitions_.find(token); found != partitions_.end())
      at(found->second->task().name(), [&] { found->second->answered(std::move(result)); });
  for (uint64_t token : content.woken)
    if (auto found = partitions_.find(token); found != partitions_.end()) found->second->woken();
  if (content.nudged)
    for (const auto& [token, partition] : partitions_) partition->woken();
  if (!content.end) return true;
  ends_in_order_ = true;
  if (content.release)
    for (const auto& [token, partition] : partitions_) partition->release();
  return false;
}

void Worker::add(Task task) {
  const uint64_t token = next_token_++;
  Partition::Callbacks callbacks;
  callbacks.answered = [context = context_, inbox = inbox_, token](bus::CommitResult result) {
    // Counted here: the worker may be gone.
    if (!result && result.error().kind == ErrorKind::kFenced) ++context->stats.fenced;
    inbox->change([&](Inbox::Content& content) { content.answers.emplace_back(token, std::move(result)); });
  };
  callbacks.woken = [inbox = inbox_, token] {
    inbox->change([&](Inbox::Content& content) { content.woken.push_back(token); });
  };
  partitions_.emplace(token, std::make_unique<Partition>(context_, id_, std::move(task), std::move(callbacks)));
}

/// One turn for each partition that has something to do.
void Worker::take_turns() {
  for (const auto& [token, partition] : partitions_)
    if (partition->is_runnable()) at(partition->task().name(), [&] { partition->turn(); });
}

template <typename Work>
void Worker::at(const std::string& task, Work&& work) {
  {
    MutexLock lock(turn_mutex_);
    turn_of_ = task;
  }
  turn_began_.store(std::max<int64_t>(1, context_->clock.steady_ns()), std::memory_order_release);
  work();
  turn_began_.store(0, std::memory_order_release);
}

}  // namespace millrace::worker
