#pragma once

#include <chrono>
#include <cstdint>

namespace millrace::config {

/// [worker]: the threads that run partition processors. Keys and their meaning: worker_config.cc.
struct WorkerConfig {
  uint32_t threads = 4;
  std::chrono::milliseconds step_deadline = std::chrono::seconds(30);
  uint32_t max_stuck_workers = 2;
  uint32_t batch_records = 500;
  uint64_t batch_bytes = 1ull << 20;
  uint32_t timers_per_step = 100;
  uint32_t max_attempts = 8;
  std::chrono::milliseconds backoff_min{200};
  std::chrono::milliseconds backoff_max = std::chrono::minutes(5);
  uint32_t max_parked_records = 1'000;
  uint64_t max_parked_bytes = 16ull << 20;
};

}  // namespace millrace::config
