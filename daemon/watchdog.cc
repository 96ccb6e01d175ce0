#include "daemon/watchdog.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace millrace::daemon {

bool Watchdog::look() {
  std::set<std::string> stuck;
  stuck_text_.clear();
  for (const Health::LoopState& loop : health_.check()) {
    std::chrono::nanoseconds unanswered(loop.unanswered_ns);
    if (unanswered < limit_) continue;
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(unanswered).count();
    stuck_text_ += fmt::format("{}{} ({} s)", stuck_text_.empty() ? "" : ", ", loop.name, seconds);
    if (!stuck_.contains(loop.name))
      spdlog::error("loop {} has made no progress for {} s and counts as stuck", loop.name, seconds);
    stuck.insert(loop.name);
  }
  for (const std::string& name : stuck_)
    if (!stuck.contains(name)) spdlog::warn("loop {} makes progress again", name);
  stuck_ = std::move(stuck);
  if (!stuck_.empty()) return false;
  feed_();
  return true;
}

std::chrono::milliseconds Watchdog::interval(std::chrono::milliseconds limit,
                                             std::optional<std::chrono::milliseconds> period) {
  std::chrono::milliseconds interval = limit / 4;
  // A third, so that one late look does not cost the process its life.
  if (period) interval = std::min(interval, *period / 3);
  return std::max(interval, std::chrono::milliseconds(1));
}

}  // namespace millrace::daemon
