#include "base/clock.h"

namespace millrace {

int64_t SystemClock::wall_ms() const {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

int64_t SystemClock::steady_ns() const {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

SystemClock& SystemClock::instance() {
  static SystemClock clock;
  return clock;
}

void ManualClock::advance(std::chrono::milliseconds by) {
  wall_ms_.fetch_add(by.count(), std::memory_order_acq_rel);
  steady_ns_.fetch_add(std::chrono::nanoseconds(by).count(), std::memory_order_acq_rel);
}

}  // namespace millrace
