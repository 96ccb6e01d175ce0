#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

/// What members of a consumer group ask and are answered, in the terms of Kafka's classic group protocol: subscriptions
/// and assignments are bytes that only members understand. Error codes are Kafka's names.
namespace millrace::group {

/// Before the first generation, and of a commit by somebody who is no member.
inline constexpr int32_t kNoGeneration = -1;

enum class GroupState : uint8_t {
  kEmpty,                ///< no members; offsets may be there
  kPreparingRebalance,   ///< waits for members to join (again)
  kCompletingRebalance,  ///< waits for the leader's assignment to come and to be durable
  kStable,
  kDead,  ///< being deleted
};
/// Kafka's names: "Empty", "PreparingRebalance", ...
std::string_view to_string(GroupState state);

/// A way to assign partitions that a member supports, and what it says of itself under it.
struct Protocol {
  std::string name;
  Bytes metadata;
  friend bool operator==(const Protocol&, const Protocol&) = default;
};

struct JoinRequest {
  std::string member_id;                   ///< empty: a new member
  std::optional<std::string> instance_id;  ///< a static member
  std::string client_id;
  std::string client_host;
  int64_t session_timeout_ms = 45'000;
  int64_t rebalance_timeout_ms = 60'000;
  std::string protocol_type;
  std::vector<Protocol> protocols;  ///< best first
  /// A new dynamic member gets its id first and joins with it (JoinGroup 4 and later).
  bool member_id_required = false;
  /// Whether the answer may say skip_assignment to a leader (JoinGroup 9 and later).
  bool can_skip_assignment = false;
};

struct JoinAnswer {
  struct Member {
    std::string id;
    std::optional<std::string> instance_id;
    Bytes metadata;
  };
  /// MEMBER_ID_REQUIRED comes with a member id.
  std::optional<Error> error;
  std::string member_id;
  int32_t generation = kNoGeneration;
  std::string protocol_type;
  std::string protocol;
  std::string leader;
  std::vector<Member> members;   ///< for the leader only
  bool skip_assignment = false;  ///< the leader need not assign: the assignment stands
};

struct Assignment {
  std::string member_id;
  Bytes assignment;
};

struct SyncRequest {
  std::string member_id;
  std::optional<std::string> instance_id;
  int32_t generation = kNoGeneration;
  std::optional<std::string> protocol_type;  ///< checked when given
  std::optional<std::string> protocol;
  std::vector<Assignment> assignments;  ///< of the leader
};

struct SyncAnswer {
  std::optional<Error> error;
  std::string protocol_type;
  std::string protocol;
  Bytes assignment;
};

/// Whoever heartbeats, leaves or commits.
struct MemberIdentity {
  std::string member_id;
  std::optional<std::string> instance_id;
  int32_t generation = kNoGeneration;
};

/// What a group tells of a member.
struct MemberInfo {
  std::string id;
  std::optional<std::string> instance_id;
  std::string client_id;
  std::string client_host;
  int64_t session_timeout_ms = 0;
  int64_t rebalance_timeout_ms = 0;
  std::vector<Protocol> protocols;
  Bytes assignment;
};

struct GroupInfo {
  std::string name;
  GroupState state = GroupState::kDead;
  int32_t generation = 0;
  std::string protocol_type;
  std::string protocol;
  std::string leader;
  std::vector<MemberInfo> members;  ///< by id
};

}  // namespace millrace::group
