#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace millrace::daemon {

/// Tells systemd, or whoever listens at $NOTIFY_SOCKET, how the process fares (sd_notify(3)). Without a listener every
/// call does nothing. Sending fails silently, as the protocol intends.
class ServiceManager {
 public:
  void ready(const std::string& status) const;
  /// Followed by ready() when the reload is over, whatever came of it.
  void reloading() const;
  void stopping() const;
  void status(const std::string& text) const;
  /// Restarts the watchdog's clock. Only for Watchdog to call.
  void watchdog() const;

  /// How often watchdog() is expected at least ($WATCHDOG_USEC); nullopt when nobody watches.
  static std::optional<std::chrono::milliseconds> watchdog_period();
};

}  // namespace millrace::daemon
