#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/heartbeat.h"

namespace millrace::daemon {

/// Looks after the daemon's loops and feeds the service manager's watchdog as long as all of them make progress. It is
/// not the passing of time that feeds: a loop which has not answered its nudge within the limit ends the feeding until
/// it moves again. Owned by Service, called by the main thread only.
class Watchdog {
 public:
  /// `feed` is called from look().
  Watchdog(Health& health, std::chrono::milliseconds limit, std::function<void()> feed)
      : health_(health), limit_(limit), feed_(std::move(feed)) {}

  /// One look at every loop. Logs once when a loop gets stuck and once when it moves again. True when it fed.
  bool look();

  /// "commit (12 s), io-0 (11 s)": what was stuck at the last look; empty when nothing was.
  const std::string& stuck() const { return stuck_text_; }

  /// How often to look, so that both a stuck loop and a watchdog of this period are served in time.
  static std::chrono::milliseconds interval(std::chrono::milliseconds limit,
                                            std::optional<std::chrono::milliseconds> period);

 private:
  Health& health_;
  const std::chrono::milliseconds limit_;
  const std::function<void()> feed_;
  std::set<std::string> stuck_;
  std::string stuck_text_;
};

}  // namespace millrace::daemon
