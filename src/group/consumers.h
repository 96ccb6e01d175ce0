#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "bus/commit_log.h"
#include "group/consumer_protocol.h"
#include "group/coordinator.h"

namespace millrace::group {

/// Where a member begins that finds no committed offset, or one that retention has passed.
enum class OffsetReset { kEarliest, kLatest, kNone };

struct ConsumerSpec {
  std::vector<std::string> topics;
  std::string client_id, client_host;
  std::optional<std::string> instance_id;
  int64_t session_timeout_ms = 30'000;
  int64_t rebalance_timeout_ms = 60'000;
  OffsetReset reset = OffsetReset::kLatest;
};

/// A member as of one generation.
struct Membership {
  std::string group, member_id;
  int32_t generation = kNoGeneration;
  std::string protocol;
  std::vector<std::string> topics;
  OffsetReset reset = OffsetReset::kLatest;
  TopicPartitions assignment;
  MemberInfo info;
  MemberIdentity identity() const { return {member_id, info.instance_id, generation}; }
};

/// Members that have no client library: the node joins, assigns and syncs for them whenever they ask for something.
/// Everything about such a member lies in its subscription (the reset in its user data), so nothing is lost by a
/// restart. Any thread; never blocks but for reading topics. Owned by main, above the Coordinator. Bounded by the
/// members of the groups.
class Consumers {
 public:
  using Reply = std::function<void(Result<Membership>)>;

  Consumers(Coordinator& coordinator, bus::CommitLog& log) : coordinator_(coordinator), log_(log) {}

  /// Answers when the member has its assignment. Errors: those of Coordinator::join and sync.
  void join(const std::string& group, const ConsumerSpec& spec, Reply reply) EXCLUDES(mutex_);
  /// The member as it stands; a rebalance is joined first. Counts as a heartbeat. Errors: UNKNOWN_GROUP,
  /// UNKNOWN_MEMBER_ID (also for members that a client library runs), those of joining.
  void settle(const std::string& group, const std::string& member, Reply reply) EXCLUDES(mutex_);
  /// Nobody was told of a member that has just joined: it leaves, unless it is static.
  void forget(const std::string& group, const std::string& member, const std::optional<std::string>& instance_id);
  /// As settle(), but only looks.
  Result<Membership> look(const std::string& group, const std::string& member) const;

 private:
  struct Drive;
  Result<Membership> membership(const std::string& group, const Coordinator::Standing& standing) const;
  void start(std::shared_ptr<Drive> drive);
  void joined(const std::shared_ptr<Drive>& drive, const JoinAnswer& answer);
  void synced(const std::shared_ptr<Drive>& drive, const SyncAnswer& answer);
  void finish(const std::shared_ptr<Drive>& drive, Status status) EXCLUDES(mutex_);
  Result<std::vector<Assignment>> assign(const JoinAnswer& answer) const;
  Result<std::map<std::string, uint32_t>> partitions_of(const std::vector<std::string>& topics) const;
  bool leaves_partitions_out(const std::string& group) const;

  Coordinator& coordinator_;
  bus::CommitLog& log_;
  Mutex mutex_;
  /// Members that are joining, by group and member id.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Drive>> drives_ GUARDED_BY(mutex_);
};

}  // namespace millrace::group
