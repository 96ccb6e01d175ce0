// How members come in, and a rebalance from its beginning to the new generation.

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "group/classic_group.h"

namespace millrace::group {
namespace {

/// Ids given out and not used are forgotten by time, and are not more than this at once.
constexpr size_t kMaxPending = 1'000;

void refuse(ClassicGroup::Ticket ticket, const std::string& member_id, ErrorKind kind, std::string_view code,
            std::string message, ClassicGroup::Effects& effects) {
  JoinAnswer answer;
  answer.error = Error{kind, code, std::move(message)};
  answer.member_id = member_id;
  effects.joins.emplace_back(ticket, std::move(answer));
}

/// Of one member, whatever order it names its protocols in.
const Bytes* metadata_of(const std::vector<Protocol>& protocols, const std::string& name) {
  for (const Protocol& protocol : protocols)
    if (protocol.name == name) return &protocol.metadata;
  return nullptr;
}

}  // namespace

Status ClassicGroup::check_new(const JoinRequest& request) const {
  if (state_ == GroupState::kDead)
    return fail(ErrorKind::kUnavailable, "COORDINATOR_NOT_AVAILABLE",
                fmt::format("group '{}' is being deleted", name_));
  if (request.session_timeout_ms < limits_.min_session_timeout_ms ||
      request.session_timeout_ms > limits_.max_session_timeout_ms)
    return fail(ErrorKind::kInvalidArgument, "INVALID_SESSION_TIMEOUT",
                fmt::format("a session time-out of {} ms is outside [{}, {}]", request.session_timeout_ms,
                            limits_.min_session_timeout_ms, limits_.max_session_timeout_ms));
  if (request.rebalance_timeout_ms < 0 || request.rebalance_timeout_ms > limits_.max_rebalance_timeout_ms)
    return fail(ErrorKind::kInvalidArgument, "INVALID_REBALANCE_TIMEOUT",
                fmt::format("a rebalance time-out of {} ms is outside [0, {}]", request.rebalance_timeout_ms,
                            limits_.max_rebalance_timeout_ms));
  if (!supports(request))
    return fail(ErrorKind::kConflict, "INCONSISTENT_GROUP_PROTOCOL",
                fmt::format("group '{}' and the member have no protocol in common", name_));
  // What it subscribed to before makes room; assignments will be made anew.
  std::string own = request.member_id;
  if (request.instance_id)
    if (auto known = static_ids_.find(*request.instance_id); known != static_ids_.end()) own = known->second;
  size_t subscribed = subscribed_bytes(own);
  for (const Protocol& protocol : request.protocols) subscribed += protocol.name.size() + protocol.metadata.size();
  if (subscribed > limits_.max_bytes)
    return fail(ErrorKind::kExhausted, "GROUP_TOO_LARGE",
                fmt::format("subscriptions of group '{}' would have {} bytes together; at most {} are kept", name_,
                            subscribed, limits_.max_bytes));
  return {};
}

void ClassicGroup::join(int64_t now, Ticket ticket, const JoinRequest& request, const std::string& fresh_id,
                        Effects& effects) {
  auto refuse_with = [&](const Error& why) {
    refuse(ticket, request.member_id, why.kind, why.code, why.message, effects);
  };
  if (auto status = check_new(request); !status) return refuse_with(status.error());
  const bool in_time = pending_.contains(request.member_id);
  if (!request.member_id.empty() && !in_time) return join_known(now, ticket, request, effects);

  auto instance = request.instance_id ? static_ids_.find(*request.instance_id) : static_ids_.end();
  if (instance != static_ids_.end() && !in_time) {
    const std::string old_id = instance->second;
    return replace_static(now, ticket, request, old_id, fresh_id, effects);
  }
  if (members_.size() + (in_time ? 0 : pending_.size()) >= limits_.max_members)
    return refuse_with(Error{ErrorKind::kExhausted, "GROUP_MAX_SIZE_REACHED",
                             fmt::format("group '{}' has {} members; no more are taken", name_, limits_.max_members)});
  if (request.instance_id || !request.member_id_required || in_time) {
    pending_.erase(request.member_id);
    return add(now, ticket, request, in_time ? request.member_id : fresh_id, effects);
  }
  if (pending_.size() >= kMaxPending)
    return refuse_with(Error{ErrorKind::kExhausted, "GROUP_MAX_SIZE_REACHED",
                             fmt::format("{} new members of group '{}' have not joined yet", kMaxPending, name_)});
  pending_[fresh_id] = now + request.session_timeout_ms;
  refuse(ticket, fresh_id, ErrorKind::kConflict, "MEMBER_ID_REQUIRED", "join again with this member id", effects);
}

void ClassicGroup::add(int64_t now, Ticket ticket, const JoinRequest& request, const std::string& id,
                       Effects& effects) {
  Member member;
  member.info.id = id;
  member.info.instance_id = request.instance_id;
  update(member, request);
  touch(now, member);
  if (members_.empty()) protocol_type_ = request.protocol_type;
  if (leader_.empty()) leader_ = id;
  if (request.instance_id) static_ids_[*request.instance_id] = id;
  auto& added = members_[id] = std::move(member);
  joined_meanwhile_ = true;
  await_join(added, ticket, effects);
  if (state_ != GroupState::kPreparingRebalance)
    prepare(now, effects);
  else
    try_complete_join(now, effects);
}

void ClassicGroup::join_known(int64_t now, Ticket ticket, const JoinRequest& request, Effects& effects) {
  auto found = find({request.member_id, request.instance_id, generation_});
  if (!found)
    return refuse(ticket, request.member_id, found.error().kind, found.error().code, found.error().message, effects);
  Member& member = **found;
  touch(now, member);
  const bool same = member.info.protocols == request.protocols;
  const bool is_leader = member.info.id == leader_;
  // In these states nothing changes by a join that only repeats a lost answer; a leader that joins again asks for a
  // new assignment.
  if ((state_ == GroupState::kCompletingRebalance && same) || (state_ == GroupState::kStable && same && !is_leader)) {
    effects.joins.emplace_back(ticket, answer_for(member));
    return;
  }
  update(member, request);
  await_join(member, ticket, effects);
  if (state_ != GroupState::kPreparingRebalance)
    prepare(now, effects);
  else
    try_complete_join(now, effects);
}

/// A static member came back under a new id: it takes over place and assignment of the old one, which is fenced.
void ClassicGroup::replace_static(int64_t now, Ticket ticket, const JoinRequest& request, const std::string& old_id,
                                  const std::string& id, Effects& effects) {
  auto node = members_.extract(old_id);
  node.key() = id;
  Member& member = node.mapped();
  const Error told{ErrorKind::kFenced, "FENCED_INSTANCE_ID",
                   fmt::format("instance '{}' of group '{}' joined anew", *request.instance_id, name_)};
  if (member.joining) refuse(*member.joining, old_id, told.kind, told.code, told.message, effects);
  if (member.syncing) effects.syncs.push_back({*member.syncing, {told, {}, {}, {}}});
  member.joining.reset();
  member.syncing.reset();
  member.holds = 0;
  member.info.id = id;
  static_ids_[*request.instance_id] = id;
  replaced_.emplace_back(old_id, *request.instance_id);
  if (replaced_.size() > kMaxReplaced) replaced_.pop_front();
  if (auto coming = coming_assignments_.extract(old_id)) {
    coming.key() = id;
    coming_assignments_.insert(std::move(coming));
  }
  const Bytes* before = metadata_of(member.info.protocols, protocol_);
  const Bytes* after = metadata_of(request.protocols, protocol_);
  const bool same = before != nullptr && after != nullptr && *before == *after;
  update(member, request);
  touch(now, member);
  members_.insert(std::move(node));
  const bool was_leader = leader_ == old_id;
  if (was_leader) leader_ = id;

  Member& now_member = members_.at(id);
  if (state_ == GroupState::kStable && same && select_protocol() == protocol_) {
    persist(effects);
    JoinAnswer answer = answer_for(now_member);
    if (was_leader && request.can_skip_assignment) {
      answer.skip_assignment = true;
    } else if (was_leader) {
      // Whoever takes itself for the leader would assign anew; it is told of the id it had before.
      answer.leader = old_id;
      answer.members.clear();
    }
    replacements_.push_back({revision_, ticket, std::move(answer)});
    return;
  }
  await_join(now_member, ticket, effects);
  if (state_ != GroupState::kPreparingRebalance)
    prepare(now, effects);
  else
    try_complete_join(now, effects);
}

void ClassicGroup::update(Member& member, const JoinRequest& request) {
  member.info.client_id = request.client_id;
  member.info.client_host = request.client_host;
  member.info.session_timeout_ms = request.session_timeout_ms;
  member.info.rebalance_timeout_ms = request.rebalance_timeout_ms;
  member.info.protocols = request.protocols;
}

void ClassicGroup::await_join(Member& member, Ticket ticket, Effects& effects) {
  // A repeated request takes the place of the one whose answer was lost.
  if (member.joining)
    refuse(*member.joining, member.info.id, ErrorKind::kConflict, "REBALANCE_IN_PROGRESS",
           fmt::format("member '{}' of group '{}' joined once more meanwhile", member.info.id, name_), effects);
  member.joining = ticket;
}

JoinAnswer ClassicGroup::answer_for(const Member& member) const {
  JoinAnswer answer;
  answer.member_id = member.info.id;
  answer.generation = generation_;
  answer.protocol_type = protocol_type_;
  answer.protocol = protocol_;
  answer.leader = leader_;
  if (member.info.id != leader_) return answer;
  for (const auto& [id, one] : members_) {
    const Bytes* metadata = metadata_of(one.info.protocols, protocol_);
    answer.members.push_back({id, one.info.instance_id, metadata != nullptr ? *metadata : Bytes()});
  }
  return answer;
}

// ---------------------------------------------------------------------------------------------------------- rebalance

void ClassicGroup::rebalance(int64_t now, Effects& effects) {
  if (state_ == GroupState::kStable || state_ == GroupState::kCompletingRebalance) prepare(now, effects);
}

int64_t ClassicGroup::rebalance_timeout() const {
  int64_t longest = 0;
  for (const auto& [id, member] : members_) longest = std::max(longest, member.info.rebalance_timeout_ms);
  return longest;
}

void ClassicGroup::prepare(int64_t now, Effects& effects) {
  if (state_ == GroupState::kCompletingRebalance) {
    for (auto& [id, member] : members_) {
      member.info.assignment.clear();
      member.sync_pending = false;
      if (!member.syncing) continue;
      effects.syncs.push_back({*member.syncing,
                               {Error{ErrorKind::kConflict, "REBALANCE_IN_PROGRESS",
                                      fmt::format("group '{}' is rebalancing: its members are to join again", name_)},
                                {},
                                {},
                                {}}});
      member.syncing.reset();
      touch(now, member);
    }
    coming_assignments_.clear();
    storing_.reset();
  }
  for (auto& [id, member] : members_) member.sync_pending = false;
  sync_deadline_.reset();
  initial_ = state_ == GroupState::kEmpty;
  state_ = GroupState::kPreparingRebalance;
  if (initial_) {
    const int64_t timeout = rebalance_timeout();
    const int64_t delay = std::min(limits_.initial_rebalance_delay_ms, timeout);
    initial_left_ms_ = timeout - delay;
    joined_meanwhile_ = false;
    join_deadline_ = now + delay;
    if (delay > 0) return;
    return complete_join(now, effects);
  }
  join_deadline_ = now + rebalance_timeout();
  try_complete_join(now, effects);
}

void ClassicGroup::try_complete_join(int64_t now, Effects& effects) {
  if (state_ != GroupState::kPreparingRebalance) return;
  // The initial delay is waited for, unless nobody is left to wait.
  if (initial_ && !members_.empty()) return;
  if (!pending_.empty() && !members_.empty()) return;
  for (const auto& [id, member] : members_)
    if (!member.joining) return;
  complete_join(now, effects);
}

bool ClassicGroup::elect_leader() {
  if (auto leader = members_.find(leader_); leader != members_.end() && leader->second.joining) return true;
  for (const auto& [id, member] : members_)
    if (member.joining) {
      leader_ = id;
      return true;
    }
  return false;
}

void ClassicGroup::complete_join(int64_t now, Effects& effects) {
  std::vector<std::string> absent;
  for (const auto& [id, member] : members_)
    if (!member.joining && !member.info.instance_id) absent.push_back(id);
  for (const std::string& id : absent)
    remove(id,
           Error{ErrorKind::kNotFound, "UNKNOWN_MEMBER_ID",
                 fmt::format("member '{}' of group '{}' did not join again in time", id, name_)},
           effects);
  pending_.clear();
  if (!members_.empty() && !elect_leader()) {
    // Only static members, and none of them is there: their sessions decide.
    join_deadline_ = now + std::max(rebalance_timeout(), kMinAbsenceMs);
    return;
  }
  join_deadline_.reset();
  initial_ = false;
  ++generation_;
  if (members_.empty()) {
    state_ = GroupState::kEmpty;
    protocol_.clear();
    leader_.clear();
    ++rebalances_;
    return persist(effects);
  }
  protocol_ = select_protocol();
  state_ = GroupState::kCompletingRebalance;
  storing_.reset();
  coming_assignments_.clear();
  for (auto& [id, member] : members_) {
    member.sync_pending = true;
    if (!member.joining) continue;
    effects.joins.emplace_back(*member.joining, answer_for(member));
    member.joining.reset();
    touch(now, member);
  }
  sync_deadline_ = now + rebalance_timeout();
}

}  // namespace millrace::group
