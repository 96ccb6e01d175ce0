#include "config/bus_config.h"

#include "config/section_builder.h"
#include "config/section_tables.h"

namespace millrace::config {

using namespace std::chrono_literals;

Section bus_section() {
  using C = BusConfig;
  constexpr uint64_t kKB = 1ull << 10, kMB = 1ull << 20, kGB = 1ull << 30;
  SectionBuilder<C> s("bus", &Config::bus, "The commit pipeline and the partitioned log.");
  s.power_of_two("commitRingSlotCount", &C::commit_ring_slot_count, 2, 1 << 20,
                 "Commits that may be under way at once. A full ring answers with an error that is safe to retry.");
  s.size("commitRingMaxMemorySize", &C::commit_ring_max_memory_bytes, 1 * kMB, 16 * kGB,
         "Memory of the commits under way, together.");
  s.size("commitMaxSize", &C::commit_max_bytes, 64 * kKB, 512 * kMB, "Largest single commit; a larger one is refused.");
  s.size("commitGroupMaxSize", &C::commit_group_max_bytes, 64 * kKB, 64 * kMB,
         "How much is written with one disk sync. One commit that is larger goes alone.");
  s.boolean("commitLead", &C::commit_lead,
            "Whether a caller that may block runs an idle pipeline itself, which saves two thread switches a commit.");
  s.size("segmentSize", &C::segment_bytes, 1 * kMB, 4 * kGB,
         "A log segment is closed at this size. Retention frees whole segments; many small ones make reading slower.");
  s.duration("segmentRollAfter", &C::segment_roll_after, 1s, 366 * 24h,
             "A log segment is closed after this time even if it is small, so that retention can free it.");
  s.integer("maxTopics", &C::max_topics, 1, 1'000'000, "Topics on the node, at most.");
  s.integer("maxPartitions", &C::max_partitions, 1, 10'000'000, "Partitions of all topics together, at most.");
  s.integer("defaultPartitions", &C::default_partitions, 1, 10'000,
            "Partitions of a topic that is created without a count.");
  s.size("maxMessageSize", &C::max_message_bytes, 1 * kKB, 128 * kMB,
         "Largest record batch that a topic takes, unless its max.message.bytes says otherwise.");
  s.size("fetchMaxSize", &C::fetch_max_bytes, 1 * kKB, 256 * kMB,
         "Most that one read returns, whatever the reader asks for; a single record batch that is larger comes all the "
         "same.");
  s.duration("longPollMax", &C::long_poll_max, 100ms, 10min,
             "Longest time a read waits for new records, whatever the reader asks for.");
  s.integer("idempotencyMaxKeys", &C::idempotency_max_keys, 1'000, 100'000'000,
            "Idempotency keys that are remembered. When it is reached, requests with new keys are refused until old "
            "ones expire.");
  s.duration("retentionCheckInterval", &C::retention_check_interval, 100ms, 24h,
             "How often the log is looked through for what retention and compaction have to do.");
  s.size("maintenanceRate", &C::maintenance_bytes_per_second, 64 * kKB, 64 * kGB,
         "Bytes a second that retention and compaction read and write at most, so that they do not slow down appends.");
  s.size("compactionMemory", &C::compaction_memory_bytes, 1 * kMB, 16 * kGB,
         "Memory for the keys of a partition that is compacted. One with more keys is compacted in several passes.");
  s.duration("scrubInterval", &C::scrub_interval, 1min, 366 * 24h,
             "How often everything stored is read and its checksums are compared, so that damage is found early.");
  s.size("scrubRate", &C::scrub_bytes_per_second, 64 * kKB, 64 * kGB, "Bytes a second that are read for that at most.");
  s.integer("maxGroups", &C::max_groups, 1, 1'000'000, "Consumer groups on the node, at most.");
  s.integer("groupMaxMembers", &C::group_max_members, 1, 100'000, "Members of one consumer group, at most.");
  s.size("groupMaxSize", &C::group_max_bytes, 16 * kKB, 64 * kMB,
         "Subscriptions and assignments of one consumer group together, at most.");
  s.duration("groupInitialRebalanceDelay", &C::group_initial_rebalance_delay, 0ms, 60s,
             "How long an empty consumer group waits for more members before it assigns for the first time.");
  s.duration("groupMinSessionTimeout", &C::group_min_session_timeout, 10ms, 24h,
             "Shortest session time-out that a member may ask for.");
  s.duration("groupMaxSessionTimeout", &C::group_max_session_timeout, 10ms, 24h,
             "Longest session time-out that a member may ask for.");
  s.duration("offsetsRetention", &C::offsets_retention, 1s, 3'650 * 24h,
             "A consumer group without members and commits for so long is forgotten, with its offsets.");
  return std::move(s).build();
}

}  // namespace millrace::config
