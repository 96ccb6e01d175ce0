#include "worker/context.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

namespace millrace::worker {

std::string Task::name() const {
  return fmt::format("{}/{}", processor->name(), partition);
}

void Mailbox::worker_ended(WorkerId worker, bool in_order) {
  MutexLock lock(mutex_);
  mail_.ended.emplace_back(worker, in_order);
  nudged_ = true;
  changed_.notify_one();
}

void Mailbox::look_at_topics() {
  MutexLock lock(mutex_);
  mail_.look_at_topics = true;
  nudged_ = true;
  changed_.notify_one();
}

void Mailbox::nudge() {
  MutexLock lock(mutex_);
  nudged_ = true;
  changed_.notify_one();
}

Mailbox::Mail Mailbox::take(std::chrono::nanoseconds wait) {
  MutexLock lock(mutex_);
  if (!nudged_ && wait.count() > 0) changed_.wait_for(mutex_, wait);
  nudged_ = false;
  return std::exchange(mail_, {});
}

}  // namespace millrace::worker
