#include "base/heartbeat.h"

namespace millrace {

std::shared_ptr<Heartbeat> Health::watch(std::string name, std::function<void()> nudge) {
  auto heartbeat = std::make_shared<Heartbeat>(std::move(name), std::move(nudge));
  MutexLock lock(mutex_);
  loops_.push_back(heartbeat);
  return heartbeat;
}

std::vector<Health::LoopState> Health::check() {
  std::vector<LoopState> states;
  std::vector<std::shared_ptr<Heartbeat>> to_nudge;
  {
    MutexLock lock(mutex_);
    int64_t now = clock_.steady_ns();
    std::erase_if(loops_, [](const auto& loop) { return loop.expired(); });
    for (const auto& weak : loops_) {
      auto loop = weak.lock();
      if (!loop) continue;
      uint64_t beats = loop->beats_.load(std::memory_order_acquire);
      if (loop->waiting_ && beats != loop->beats_at_nudge_) loop->waiting_ = false;
      states.push_back({loop->name_, beats, loop->waiting_ ? now - loop->nudged_at_ns_ : 0});
      if (!loop->waiting_) {
        loop->waiting_ = true;
        loop->beats_at_nudge_ = beats;
        loop->nudged_at_ns_ = now;
        to_nudge.push_back(std::move(loop));
      }
    }
  }
  // Outside the lock: a nudge may run code of its loop's owner.
  for (const auto& loop : to_nudge) loop->nudge_();
  return states;
}

}  // namespace millrace
