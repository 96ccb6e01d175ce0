#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace millrace {

/// Where time comes from. Everything that waits, expires or stamps takes a Clock, so that a test can move it.
/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Milliseconds since 1970-01-01T00:00:00Z. May step backwards.
  virtual int64_t wall_ms() const = 0;
  /// Nanoseconds on a clock that never steps. Only differences mean something.
  virtual int64_t steady_ns() const = 0;
};

class SystemClock final : public Clock {
 public:
  int64_t wall_ms() const override;
  int64_t steady_ns() const override;
  /// The process-wide instance.
  static SystemClock& instance();
};

/// A clock that stands still until told to move; both readings move together.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t wall_ms = 1'700'000'000'000) : wall_ms_(wall_ms) {}
  int64_t wall_ms() const override { return wall_ms_.load(std::memory_order_acquire); }
  int64_t steady_ns() const override { return steady_ns_.load(std::memory_order_acquire); }
  void advance(std::chrono::milliseconds by);
  /// Steps the wall clock alone, as an operator or NTP does.
  void step_wall(std::chrono::milliseconds by) { wall_ms_.fetch_add(by.count(), std::memory_order_acq_rel); }

 private:
  std::atomic<int64_t> wall_ms_;
  std::atomic<int64_t> steady_ns_{0};
};

}  // namespace millrace
