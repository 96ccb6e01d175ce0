#include "group/classic_group.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "proto/group.pb.h"

namespace millrace::group {
namespace {

Error error(ErrorKind kind, std::string_view code, std::string message) {
  return Error{kind, code, std::move(message)};
}

void refuse(ClassicGroup::Ticket ticket, const std::string& member_id, Error why, ClassicGroup::Effects& effects) {
  JoinAnswer answer;
  answer.error = std::move(why);
  answer.member_id = member_id;
  effects.joins.emplace_back(ticket, std::move(answer));
}

void refuse_sync(ClassicGroup::Ticket ticket, Error why, ClassicGroup::Effects& effects) {
  SyncAnswer answer;
  answer.error = std::move(why);
  effects.syncs.emplace_back(ticket, std::move(answer));
}

Error rebalancing(const std::string& group) {
  return error(ErrorKind::kConflict, "REBALANCE_IN_PROGRESS",
               fmt::format("group '{}' is rebalancing: its members are to join again", group));
}

Error unknown_member(const std::string& group, const std::string& id) {
  return error(ErrorKind::kNotFound, "UNKNOWN_MEMBER_ID", fmt::format("group '{}' has no member '{}'", group, id));
}

Error fenced(const std::string& group, const std::string& instance, const std::string& id) {
  return error(ErrorKind::kFenced, "FENCED_INSTANCE_ID",
               fmt::format("instance '{}' of group '{}' is no longer member '{}'", instance, group, id));
}

}  // namespace

std::string_view to_string(GroupState state) {
  switch (state) {
    case GroupState::kEmpty:
      return "Empty";
    case GroupState::kPreparingRebalance:
      return "PreparingRebalance";
    case GroupState::kCompletingRebalance:
      return "CompletingRebalance";
    case GroupState::kStable:
      return "Stable";
    case GroupState::kDead:
      return "Dead";
  }
  return "Dead";
}

Result<ClassicGroup::Member*> ClassicGroup::find(const MemberIdentity& who) {
  if (who.instance_id) {
    auto known = static_ids_.find(*who.instance_id);
    if (known == static_ids_.end())
      return fail(ErrorKind::kNotFound, "UNKNOWN_MEMBER_ID",
                  fmt::format("group '{}' has no instance '{}'", name_, *who.instance_id));
    if (known->second != who.member_id) return tl::unexpected(fenced(name_, *who.instance_id, who.member_id));
  }
  auto found = members_.find(who.member_id);
  if (state_ == GroupState::kDead || found == members_.end()) return tl::unexpected(missing(who.member_id));
  return &found->second;
}

Error ClassicGroup::missing(const std::string& id) const {
  for (const auto& [old_id, instance] : replaced_)
    if (old_id == id) return fenced(name_, instance, id);
  return unknown_member(name_, id);
}

// ---------------------------------------------------------------------------------------------- heartbeat and commit

Status ClassicGroup::heartbeat(int64_t now, const MemberIdentity& who) {
  auto member = find(who);
  if (!member) return tl::unexpected(std::move(member.error()));
  if (who.generation != generation_)
    return fail(ErrorKind::kConflict, "ILLEGAL_GENERATION",
                fmt::format("group '{}' is at generation {}, not {}", name_, generation_, who.generation));
  touch(now, **member);
  if (state_ == GroupState::kPreparingRebalance) return tl::unexpected(rebalancing(name_));
  return {};
}

Status ClassicGroup::check_commit(int64_t now, const MemberIdentity& who) {
  if (who.generation < 0 && who.member_id.empty()) {
    if (state_ == GroupState::kEmpty) return {};
    if (state_ == GroupState::kDead)
      return fail(ErrorKind::kUnavailable, "COORDINATOR_NOT_AVAILABLE",
                  fmt::format("group '{}' is being deleted", name_));
    return fail(ErrorKind::kConflict, "GROUP_NOT_EMPTY",
                fmt::format("group '{}' has members: only they may move its offsets", name_));
  }
  auto member = find(who);
  if (!member) return tl::unexpected(std::move(member.error()));
  if (who.generation != generation_)
    return fail(ErrorKind::kConflict, "ILLEGAL_GENERATION",
                fmt::format("group '{}' is at generation {}, not {}", name_, generation_, who.generation));
  if (state_ == GroupState::kCompletingRebalance) return tl::unexpected(rebalancing(name_));
  touch(now, **member);
  return {};
}

// --------------------------------------------------------------------------------------------------------------- sync

void ClassicGroup::sync(int64_t now, Ticket ticket, const SyncRequest& request, Effects& effects) {
  auto found = find({request.member_id, request.instance_id, request.generation});
  if (!found) return refuse_sync(ticket, std::move(found.error()), effects);
  Member& member = **found;
  if (request.generation != generation_)
    return refuse_sync(
        ticket,
        error(ErrorKind::kConflict, "ILLEGAL_GENERATION",
              fmt::format("group '{}' is at generation {}, not {}", name_, generation_, request.generation)),
        effects);
  if ((request.protocol_type && *request.protocol_type != protocol_type_) ||
      (request.protocol && *request.protocol != protocol_))
    return refuse_sync(
        ticket,
        error(ErrorKind::kConflict, "INCONSISTENT_GROUP_PROTOCOL",
              fmt::format("group '{}' has chosen protocol '{}' of type '{}'", name_, protocol_, protocol_type_)),
        effects);
  touch(now, member);
  switch (state_) {
    case GroupState::kPreparingRebalance:
      return refuse_sync(ticket, rebalancing(name_), effects);
    case GroupState::kCompletingRebalance:
      // A repeated request takes the place of the one whose answer was lost.
      if (member.syncing) refuse_sync(*member.syncing, rebalancing(name_), effects);
      member.syncing = ticket;
      member.sync_pending = false;
      if (request.member_id == leader_ && !storing_) store_assignments(request, effects);
      return;
    case GroupState::kStable: {
      member.sync_pending = false;
      effects.syncs.push_back({ticket, {std::nullopt, protocol_type_, protocol_, member.info.assignment}});
      return;
    }
    case GroupState::kEmpty:
    case GroupState::kDead:
      break;
  }
  refuse_sync(ticket, unknown_member(name_, request.member_id), effects);
}

void ClassicGroup::store_assignments(const SyncRequest& request, Effects& effects) {
  size_t coming = 0;
  for (const Assignment& one : request.assignments) coming += one.assignment.size();
  const size_t subscribed = subscribed_bytes();
  if (coming + subscribed > limits_.max_bytes) {
    fail_syncs(error(ErrorKind::kExhausted, "GROUP_TOO_LARGE",
                     fmt::format("subscriptions and assignments of group '{}' have {} bytes together; at most {} are "
                                 "kept",
                                 name_, coming + subscribed, limits_.max_bytes)),
               effects);
    return;
  }
  coming_assignments_.clear();
  for (const Assignment& one : request.assignments)
    if (members_.contains(one.member_id)) coming_assignments_[one.member_id] = one.assignment;
  persist(effects);
  storing_ = revision_;
}

void ClassicGroup::fail_syncs(const Error& why, Effects& effects) {
  for (auto& [id, member] : members_) {
    if (!member.syncing) continue;
    refuse_sync(*member.syncing, why, effects);
    member.syncing.reset();
  }
}

void ClassicGroup::persist(Effects& effects) {
  ++revision_;
  effects.persist = true;
}

void ClassicGroup::persisted(int64_t now, uint64_t revision, const Status& status, Effects& effects) {
  for (Replacement& waiting : replacements_) {
    if (waiting.revision > revision) continue;
    if (!status) waiting.answer.error = status.error();
    effects.joins.emplace_back(waiting.ticket, std::move(waiting.answer));
  }
  std::erase_if(replacements_, [&](const Replacement& waiting) { return waiting.revision <= revision; });

  if (!storing_ || *storing_ > revision) return;
  storing_.reset();
  if (state_ != GroupState::kCompletingRebalance) return;
  if (!status) {
    fail_syncs(status.error(), effects);
    return prepare(now, effects);
  }
  for (auto& [id, member] : members_) {
    auto assignment = coming_assignments_.find(id);
    member.info.assignment = assignment == coming_assignments_.end() ? Bytes() : std::move(assignment->second);
    if (!member.syncing) continue;
    effects.syncs.push_back({*member.syncing, {std::nullopt, protocol_type_, protocol_, member.info.assignment}});
    member.syncing.reset();
    touch(now, member);
  }
  coming_assignments_.clear();
  state_ = GroupState::kStable;
  ++rebalances_;
}

// --------------------------------------------------------------------------------------------------- leave and expire

Status ClassicGroup::leave(int64_t now, const MemberIdentity& who, Effects& effects) {
  std::string id = who.member_id;
  if (who.instance_id) {
    auto known = static_ids_.find(*who.instance_id);
    if (known == static_ids_.end())
      return fail(ErrorKind::kNotFound, "UNKNOWN_MEMBER_ID",
                  fmt::format("group '{}' has no instance '{}'", name_, *who.instance_id));
    if (!id.empty() && id != known->second) return tl::unexpected(fenced(name_, *who.instance_id, id));
    id = known->second;
  } else if (pending_.erase(id) > 0) {
    try_complete_join(now, effects);
    return {};
  }
  if (!members_.contains(id)) return tl::unexpected(missing(id));
  remove(id, unknown_member(name_, id), effects);
  after_removal(now, effects);
  return {};
}

void ClassicGroup::remove(const std::string& id, const Error& told, Effects& effects) {
  auto found = members_.find(id);
  Member& member = found->second;
  if (member.joining) refuse(*member.joining, id, told, effects);
  if (member.syncing) refuse_sync(*member.syncing, told, effects);
  if (member.info.instance_id) static_ids_.erase(*member.info.instance_id);
  members_.erase(found);
  if (leader_ == id) leader_ = members_.empty() ? "" : members_.begin()->first;
}

void ClassicGroup::after_removal(int64_t now, Effects& effects) {
  if (state_ == GroupState::kStable || state_ == GroupState::kCompletingRebalance)
    prepare(now, effects);
  else
    try_complete_join(now, effects);
}

void ClassicGroup::expire(int64_t now, Effects& effects) {
  bool pending_gone = std::erase_if(pending_, [now](const auto& entry) { return entry.second <= now; }) > 0;
  std::vector<std::string> expired;
  for (const auto& [id, member] : members_)
    if (!member.waits() && member.session_deadline <= now) expired.push_back(id);
  if (sync_deadline_ && *sync_deadline_ <= now) {
    sync_deadline_.reset();
    for (const auto& [id, member] : members_)
      if (member.sync_pending && std::find(expired.begin(), expired.end(), id) == expired.end()) expired.push_back(id);
  }
  for (const std::string& id : expired) remove(id, unknown_member(name_, id), effects);
  if (!expired.empty())
    after_removal(now, effects);
  else if (pending_gone)
    try_complete_join(now, effects);

  if (state_ != GroupState::kPreparingRebalance || !join_deadline_ || *join_deadline_ > now) return;
  if (initial_ && joined_meanwhile_ && initial_left_ms_ > 0) {
    joined_meanwhile_ = false;
    const int64_t more = std::min(limits_.initial_rebalance_delay_ms, initial_left_ms_);
    initial_left_ms_ -= more;
    join_deadline_ = now + more;
    return;
  }
  complete_join(now, effects);
}

std::optional<int64_t> ClassicGroup::next_deadline() const {
  std::optional<int64_t> next;
  auto consider = [&next](int64_t deadline) {
    if (!next || deadline < *next) next = deadline;
  };
  if (state_ == GroupState::kPreparingRebalance && join_deadline_) consider(*join_deadline_);
  if (sync_deadline_) consider(*sync_deadline_);
  for (const auto& [id, deadline] : pending_) consider(deadline);
  for (const auto& [id, member] : members_)
    if (!member.waits()) consider(member.session_deadline);
  return next;
}

void ClassicGroup::hold(const std::string& member_id) {
  if (auto found = members_.find(member_id); found != members_.end()) ++found->second.holds;
}

void ClassicGroup::release(int64_t now, const std::string& member_id) {
  auto found = members_.find(member_id);
  if (found == members_.end() || found->second.holds == 0) return;
  if (--found->second.holds == 0) touch(now, found->second);
}

void ClassicGroup::die() {
  MILLRACE_ASSERT(state_ == GroupState::kEmpty, "a group with members cannot be deleted");
  state_ = GroupState::kDead;
  pending_.clear();
}

void ClassicGroup::revive() {
  state_ = GroupState::kEmpty;
}

// ---------------------------------------------------------------------------------------------------- what others see

GroupInfo ClassicGroup::describe() const {
  GroupInfo info{name_, state_, generation_, protocol_type_, protocol_, leader_, {}};
  for (const auto& [id, member] : members_) info.members.push_back(member.info);
  return info;
}

std::optional<MemberInfo> ClassicGroup::member(const std::string& id) const {
  auto found = members_.find(id);
  return found == members_.end() ? std::nullopt : std::optional(found->second.info);
}

size_t ClassicGroup::subscribed_bytes(const std::string& except) const {
  size_t total = 0;
  for (const auto& [id, member] : members_) {
    if (id == except) continue;
    for (const Protocol& protocol : member.info.protocols) total += protocol.name.size() + protocol.metadata.size();
  }
  return total;
}

void ClassicGroup::fill(proto::GroupRow& row) const {
  row.set_name(name_);
  row.set_generation(generation_);
  row.set_protocol_type(protocol_type_);
  row.set_protocol(protocol_);
  row.set_leader(leader_);
  for (const auto& [id, member] : members_) {
    auto& out = *row.add_members();
    out.set_id(id);
    if (member.info.instance_id) out.set_instance_id(*member.info.instance_id);
    out.set_client_id(member.info.client_id);
    out.set_client_host(member.info.client_host);
    out.set_session_timeout_ms(member.info.session_timeout_ms);
    out.set_rebalance_timeout_ms(member.info.rebalance_timeout_ms);
    for (const Protocol& protocol : member.info.protocols) {
      auto& one = *out.add_protocols();
      one.set_name(protocol.name);
      one.set_metadata(protocol.metadata);
    }
    auto coming = coming_assignments_.find(id);
    if (storing_)
      out.set_assignment(coming == coming_assignments_.end() ? Bytes() : coming->second);
    else
      out.set_assignment(member.info.assignment);
  }
}

ClassicGroup ClassicGroup::from(int64_t now, const proto::GroupRow& row, const Limits& limits) {
  ClassicGroup group(row.name(), limits);
  group.generation_ = row.generation();
  group.protocol_type_ = row.protocol_type();
  group.protocol_ = row.protocol();
  group.leader_ = row.leader();
  for (const auto& one : row.members()) {
    Member member;
    member.info.id = one.id();
    if (one.has_instance_id()) member.info.instance_id = one.instance_id();
    member.info.client_id = one.client_id();
    member.info.client_host = one.client_host();
    member.info.session_timeout_ms = one.session_timeout_ms();
    member.info.rebalance_timeout_ms = one.rebalance_timeout_ms();
    for (const auto& protocol : one.protocols())
      member.info.protocols.push_back({protocol.name(), protocol.metadata()});
    member.info.assignment = one.assignment();
    group.touch(now, member);
    if (member.info.instance_id) group.static_ids_[*member.info.instance_id] = member.info.id;
    group.members_[member.info.id] = std::move(member);
  }
  if (!group.members_.empty()) group.state_ = GroupState::kStable;
  return group;
}

// ----------------------------------------------------------------------------------------------------------- protocols

bool ClassicGroup::is_candidate(const std::string& protocol) const {
  return std::all_of(members_.begin(), members_.end(), [&](const auto& entry) {
    const auto& all = entry.second.info.protocols;
    return std::any_of(all.begin(), all.end(), [&](const Protocol& one) { return one.name == protocol; });
  });
}

bool ClassicGroup::supports(const JoinRequest& request) const {
  if (request.protocol_type.empty() || request.protocols.empty()) return false;
  if (members_.empty()) return true;
  if (request.protocol_type != protocol_type_) return false;
  return std::any_of(request.protocols.begin(), request.protocols.end(),
                     [this](const Protocol& one) { return is_candidate(one.name); });
}

/// Each member votes for the first of its protocols that all support; among equals the least name wins, so that the
/// choice does not depend on who came first.
std::string ClassicGroup::select_protocol() const {
  std::map<std::string, size_t> votes;
  for (const auto& [id, member] : members_)
    for (const Protocol& protocol : member.info.protocols)
      if (is_candidate(protocol.name)) {
        ++votes[protocol.name];
        break;
      }
  std::string best;
  for (const auto& [name, count] : votes)
    if (best.empty() || count > votes[best]) best = name;
  return best;
}

}  // namespace millrace::group
