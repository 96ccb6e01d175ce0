#include "config/worker_config.h"

#include "config/section_builder.h"
#include "config/section_tables.h"

namespace millrace::config {

using namespace std::chrono_literals;

Section worker_section() {
  using C = WorkerConfig;
  constexpr uint64_t kKB = 1ull << 10, kMB = 1ull << 20;
  SectionBuilder<C> s("worker", &Config::worker,
                      "The worker threads, which own partitions and run processors over their records.");
  s.integer("threads", &C::threads, 1, 1'024, "Worker threads. Partitions are divided evenly among them.");
  s.duration("stepDeadline", &C::step_deadline, 10ms, 1h,
             "A worker that takes longer over one step hangs: its partitions are taken over by others, and what it "
             "still commits is refused.");
  s.integer("maxStuckWorkers", &C::max_stuck_workers, 0, 1'024,
            "A thread that hangs cannot be ended. With more of them than this the node is not ready any more.");
  s.integer("batchRecords", &C::batch_records, 1, 10'000, "Records that one step takes at most.");
  s.size("batchSize", &C::batch_bytes, 1 * kKB, 64 * kMB, "Bytes of record batches that one step takes, about.");
  s.integer("timersPerStep", &C::timers_per_step, 1, 10'000, "Timers that fire in one step at most.");
  s.integer("maxAttempts", &C::max_attempts, 1, 1'000,
            "Attempts at a record that fails, before it goes to the dead letters.");
  s.duration("backoffMin", &C::backoff_min, 1ms, 1h, "Pause before the second attempt; it doubles with each one.");
  s.duration("backoffMax", &C::backoff_max, 1ms, 24h, "Longest pause between two attempts.");
  s.integer("maxParkedRecords", &C::max_parked_records, 1, 1'000'000,
            "Records of a partition that wait behind a failed one of their key. When it is reached, the partition "
            "waits.");
  s.size("maxParkedSize", &C::max_parked_bytes, 64 * kKB, 1024 * kMB, "Their bytes.");
  return std::move(s).build();
}

}  // namespace millrace::config
