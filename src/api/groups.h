#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/topics.h"
#include "group/consumers.h"
#include "group/coordinator.h"

/// Consumer groups as use cases: looking at them, moving their offsets, and members over HTTP. Answers are JSON text;
/// nothing here blocks but for reading the store.
namespace millrace::api {

/// Offsets in one request: what one Commit may hold bounds the bytes, this the work.
inline constexpr size_t kMaxOffsetsPerRequest = 10'000;

/// What a member's read found.
struct GroupRead {
  std::string json;
  bool empty = false;                  ///< a long poll may wait
  std::vector<bus::WatchedOffset> at;  ///< for these
};

/// Owned by main; any thread.
class GroupsApi {
 public:
  using MemberReply = std::function<void(Result<group::Membership>)>;

  GroupsApi(bus::CommitLog& log, const TopicsApi& topics, group::Coordinator& coordinator, group::Consumers& consumers)
      : log_(log), topics_(topics), coordinator_(coordinator), consumers_(consumers) {}

  /// By name, after `after`. {"groups":[{"group","state",..}],"next":name?}
  std::string list(const std::string& after, size_t limit) const;
  /// State, members with their assignments, committed offsets with lag. Errors: UNKNOWN_GROUP.
  Result<std::string> get(const std::string& group) const;
  /// Errors: UNKNOWN_GROUP, GROUP_NOT_EMPTY.
  void remove(const std::string& group, Reply reply);
  /// {"topic"|"topics","partitions"?,"to":"earliest"|"latest"|{"offset"}|{"time"},"dryRun"?} -> from and to of each
  /// partition. Without topics those that have offsets. Errors: UNKNOWN_GROUP, GROUP_NOT_EMPTY, UNKNOWN_TOPIC,
  /// UNKNOWN_PARTITION, OFFSET_OUT_OF_RANGE, those of the fields.
  void reset_offsets(const std::string& group, std::string_view body, Reply reply);

  /// {"topics","clientId"?,"instanceId"?,"sessionTimeout"?,"rebalanceTimeout"?,"autoOffsetReset"?} -> the member, when
  /// it has its assignment. `reply` says whether there was anybody to be told: a member that nobody knows leaves.
  using JoinReply = std::function<bool(Result<std::string>)>;
  void join(const std::string& group, std::string_view body, std::string_view peer, JoinReply reply);
  Result<std::string> member(const std::string& group, const std::string& member) const;
  Status leave(const std::string& group, const std::string& member);
  /// {"generation"?,"offsets":[{"topic","partition","offset","metadata"?,"leaderEpoch"?}]}: all of them in one Commit.
  /// Only of partitions that are assigned to the member. Errors: those of Coordinator::commit, PARTITION_NOT_ASSIGNED,
  /// OFFSET_OUT_OF_RANGE, those of the fields.
  void commit(const std::string& group, const std::string& member, std::string_view body, Reply reply);

  /// The member in the current generation: joins a rebalance first.
  void settle(const std::string& group, const std::string& member, MemberReply reply);
  /// {"generation","assignment","records","next"} from the committed positions on. Errors: OFFSET_OUT_OF_RANGE and
  /// NO_COMMITTED_OFFSET when the member resets to none, LOG_DAMAGED, COMPRESSED_BATCH.
  Result<GroupRead> read(const group::Membership& member, size_t limit, size_t max_bytes) const;
  std::unique_ptr<group::Coordinator::Hold> hold(const group::Membership& member, std::function<void()> wake) {
    return coordinator_.hold(member.group, member.member_id, member.generation, std::move(wake));
  }

  struct Lag {
    std::string group, topic;
    uint32_t partition;
    uint64_t lag;
  };
  /// Of all groups in the order of their names, at most `limit`.
  std::vector<Lag> lags(size_t limit) const;

 private:
  struct Names;
  struct Move;
  Result<Names> names(const bus::View& view) const;
  Result<std::vector<Move>> plan_reset(const std::string& group, const Json& json) const;
  Result<std::vector<bus::ConsumedOffset>> parse_offsets(const group::Membership& member, const Json& list) const;
  class Committed;
  Result<uint64_t> position(const Committed& committed, const group::Membership& member, const std::string& topic,
                            const bus::TopicPartition& at, const bus::PartitionState& state, bool& pinned) const;
  void pin(Result<group::Membership> member, MemberReply reply);
  std::string to_json(const group::Membership& member) const;

  bus::CommitLog& log_;
  const TopicsApi& topics_;
  group::Coordinator& coordinator_;
  group::Consumers& consumers_;
  mutable std::atomic<uint32_t> turn_{0};
};

}  // namespace millrace::api
