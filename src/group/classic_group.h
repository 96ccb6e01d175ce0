#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "group/types.h"

namespace millrace::proto {
class GroupRow;
}

namespace millrace::group {

/// The state machine of one consumer group: Kafka's classic protocol. It has no clock, thread, storage or lock of its
/// own: inputs bring the time (milliseconds of a steady clock), and come back with what is to be told and written.
/// Owned by the Coordinator, under whose lock it is called. Bounded by Limits.
class ClassicGroup {
 public:
  struct Limits {
    size_t max_members = 1'000;
    int64_t min_session_timeout_ms = 6'000;
    int64_t max_session_timeout_ms = 30 * 60'000;
    int64_t max_rebalance_timeout_ms = 60 * 60'000;
    /// An empty group waits so long for more members before its first assignment.
    int64_t initial_rebalance_delay_ms = 200;
    /// Subscriptions of all members together; with the assignments when these are made.
    size_t max_bytes = 4u << 20;
  };
  /// The caller's name for a request that is answered later.
  using Ticket = uint64_t;

  /// What an input comes to. Nothing of it was done yet: answers go out after the caller's lock, and `persist` asks for
  /// the row to be written and persisted() to be called with the revision that revision() has now.
  struct Effects {
    std::vector<std::pair<Ticket, JoinAnswer>> joins;
    std::vector<std::pair<Ticket, SyncAnswer>> syncs;
    bool persist = false;
  };

  ClassicGroup(std::string name, const Limits& limits) : name_(std::move(name)), limits_(limits) {}

  /// `fresh_id` becomes the id of a new member. Errors in the answer: INVALID_SESSION_TIMEOUT, MEMBER_ID_REQUIRED,
  /// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, GROUP_TOO_LARGE,
  /// COORDINATOR_NOT_AVAILABLE.
  void join(int64_t now, Ticket ticket, const JoinRequest& request, const std::string& fresh_id, Effects& effects);
  /// Errors in the answer: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS,
  /// INCONSISTENT_GROUP_PROTOCOL, GROUP_TOO_LARGE, and those of the Commit.
  void sync(int64_t now, Ticket ticket, const SyncRequest& request, Effects& effects);
  /// Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
  Status heartbeat(int64_t now, const MemberIdentity& who);
  /// A static member may be named by its instance alone. Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
  Status leave(int64_t now, const MemberIdentity& who, Effects& effects);
  /// Whether `who` may commit offsets now; it counts as a heartbeat. Without a member (empty id and kNoGeneration) only
  /// to an Empty group. Errors: as heartbeat(), GROUP_NOT_EMPTY; REBALANCE_IN_PROGRESS only while assignments are
  /// awaited.
  Status check_commit(int64_t now, const MemberIdentity& who);
  /// Everything that is due.
  void expire(int64_t now, Effects& effects);
  /// When expire() has something to do; nullopt: never.
  std::optional<int64_t> next_deadline() const;
  /// The row with this revision is durable, or was refused.
  void persisted(int64_t now, uint64_t revision, const Status& status, Effects& effects);

  /// A member that is held does not expire: its request waits inside the node. Counted. Unknown members are passed
  /// over. The session begins anew with the last release.
  void hold(const std::string& member_id);
  void release(int64_t now, const std::string& member_id);
  /// Asks all members to join again, if there are any.
  void rebalance(int64_t now, Effects& effects);
  /// No input but die() of a group that is not Empty is an assertion.
  void die();
  /// A deletion that failed: it is Empty as before.
  void revive();

  GroupState state() const { return state_; }
  int32_t generation() const { return generation_; }
  const std::string& protocol() const { return protocol_; }
  const std::string& leader() const { return leader_; }
  uint64_t revision() const { return revision_; }
  size_t size() const { return members_.size(); }
  const std::string& protocol_type() const { return protocol_type_; }
  bool has_member(const std::string& id) const { return members_.contains(id); }
  /// Why there is no such member: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when a static member took its place (the
  /// last kMaxReplaced of them, since the start).
  Error missing(const std::string& id) const;
  /// Completed rebalances since the object was made.
  uint64_t rebalances() const { return rebalances_; }
  GroupInfo describe() const;
  std::optional<MemberInfo> member(const std::string& id) const;

  void fill(proto::GroupRow& row) const;
  /// A group as its row says, after a start: its members get fresh sessions.
  static ClassicGroup from(int64_t now, const proto::GroupRow& row, const Limits& limits);

 private:
  static constexpr size_t kMaxReplaced = 100;
  /// A group that only static members are left of, none of which is there, is looked at again at the earliest then.
  static constexpr int64_t kMinAbsenceMs = 1'000;

  struct Member {
    MemberInfo info;
    std::optional<Ticket> joining, syncing;
    int64_t session_deadline = 0;
    uint32_t holds = 0;
    bool sync_pending = false;
    bool waits() const { return joining || syncing || holds > 0; }
  };
  /// Of the answer to a static member that took its own place, until the row is durable.
  struct Replacement {
    uint64_t revision;
    Ticket ticket;
    JoinAnswer answer;
  };

  Result<Member*> find(const MemberIdentity& who);
  Status check_new(const JoinRequest& request) const;
  bool supports(const JoinRequest& request) const;
  bool is_candidate(const std::string& protocol) const;
  std::string select_protocol() const;
  /// Of all subscriptions but that member's.
  size_t subscribed_bytes(const std::string& except = "") const;

  void add(int64_t now, Ticket ticket, const JoinRequest& request, const std::string& id, Effects& effects);
  void join_known(int64_t now, Ticket ticket, const JoinRequest& request, Effects& effects);
  void replace_static(int64_t now, Ticket ticket, const JoinRequest& request, const std::string& old_id,
                      const std::string& id, Effects& effects);
  void update(Member& member, const JoinRequest& request);
  void await_join(Member& member, Ticket ticket, Effects& effects);
  JoinAnswer answer_for(const Member& member) const;
  void store_assignments(const SyncRequest& request, Effects& effects);
  void fail_syncs(const Error& error, Effects& effects);

  void prepare(int64_t now, Effects& effects);
  void try_complete_join(int64_t now, Effects& effects);
  void complete_join(int64_t now, Effects& effects);
  bool elect_leader();
  void remove(const std::string& id, const Error& told, Effects& effects);
  void after_removal(int64_t now, Effects& effects);
  void touch(int64_t now, Member& member) const { member.session_deadline = now + member.info.session_timeout_ms; }
  int64_t rebalance_timeout() const;
  void persist(Effects& effects);

  std::string name_;
  Limits limits_;
  GroupState state_ = GroupState::kEmpty;
  int32_t generation_ = 0;
  std::string protocol_type_, protocol_, leader_;
  std::map<std::string, Member> members_;
  std::map<std::string, std::string> static_ids_;  ///< instance id -> member id
  std::map<std::string, int64_t> pending_;         ///< ids given and not used yet, with their deadlines
  std::vector<Replacement> replacements_;
  std::deque<std::pair<std::string, std::string>> replaced_;  ///< member id, instance id

  std::optional<int64_t> join_deadline_, sync_deadline_;
  int64_t initial_left_ms_ = 0;  ///< by how much the initial delay may still grow
  bool initial_ = false;         ///< PreparingRebalance began in Empty
  bool joined_meanwhile_ = false;
  std::optional<uint64_t> storing_;  ///< the revision that makes the assignment durable
  std::map<std::string, Bytes> coming_assignments_;
  uint64_t revision_ = 0;
  uint64_t rebalances_ = 0;
};

}  // namespace millrace::group
