#pragma once

#include <chrono>
#include <optional>

namespace millrace::daemon {

/// What the main thread waits for: signals, and being woken by another thread. Made once, by the main thread, before
/// any other thread starts: it blocks SIGTERM, SIGINT and SIGHUP for itself and all threads to come (they arrive
/// through a signalfd), and has SIGPIPE ignored. Only wake() may be called by other threads.
class Events {
 public:
  /// Throws std::system_error when the kernel refuses, which it does only without memory or file descriptors.
  Events();
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  struct Event {
    enum class Kind { kSignal, kWoken, kTimeout };
    Kind kind = Kind::kTimeout;
    int signal = 0;  ///< kSignal only
  };
  /// The next event; a signal before a wake-up. Several wake() are one event. Without a timeout it waits for ever.
  Event wait(std::optional<std::chrono::milliseconds> timeout);

  /// Thread-safe, never blocks.
  void wake() noexcept;

 private:
  int signals_;  ///< signalfd
  int wakeups_;  ///< eventfd
};

/// Ends the process as the signal does by default, so that whoever waits for it sees what it died of.
[[noreturn]] void die_by(int signal);

}  // namespace millrace::daemon
