#pragma once

#include <chrono>
#include <cstdint>

namespace millrace::config {

/// [bus]: the commit pipeline and the log. Keys and their meaning: bus_config.cc.
struct BusConfig {
  uint32_t commit_ring_slot_count = 4096;  ///< a power of two
  uint64_t commit_ring_max_memory_bytes = 64ull << 20;
  uint64_t commit_max_bytes = 16ull << 20;
  uint64_t commit_group_max_bytes = 4ull << 20;
  bool commit_lead = true;
  uint64_t segment_bytes = 64ull << 20;
  std::chrono::milliseconds segment_roll_after = std::chrono::hours(24);
  uint32_t max_topics = 10'000;
  uint32_t max_partitions = 100'000;  ///< of all topics together
  uint32_t default_partitions = 4;
  uint64_t max_message_bytes = 1ull << 20;
  uint64_t fetch_max_bytes = 4ull << 20;
  std::chrono::milliseconds long_poll_max = std::chrono::seconds(60);
  uint64_t idempotency_max_keys = 1'000'000;
  std::chrono::milliseconds retention_check_interval = std::chrono::seconds(10);
  uint64_t maintenance_bytes_per_second = 32ull << 20;
  uint64_t compaction_memory_bytes = 16ull << 20;
  std::chrono::milliseconds scrub_interval = std::chrono::hours(7 * 24);
  uint64_t scrub_bytes_per_second = 4ull << 20;
  uint32_t max_groups = 10'000;
  uint32_t group_max_members = 1'000;
  uint64_t group_max_bytes = 4ull << 20;
  std::chrono::milliseconds group_initial_rebalance_delay{200};
  std::chrono::milliseconds group_min_session_timeout = std::chrono::seconds(6);
  std::chrono::milliseconds group_max_session_timeout = std::chrono::minutes(30);
  std::chrono::milliseconds offsets_retention = std::chrono::hours(7 * 24);
};

}  // namespace millrace::config
