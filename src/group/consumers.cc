#include "group/consumers.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

#include "bus/topic.h"

namespace millrace::group {
namespace {

/// In front of the reset in the user data of members that the node runs.
constexpr std::string_view kMark = "millrace-http/1;";
constexpr std::string_view kResets[] = {"earliest", "latest", "none"};

std::optional<OffsetReset> reset_of(ByteView user_data) {
  if (!user_data.starts_with(kMark)) return std::nullopt;
  for (size_t i = 0; i < std::size(kResets); ++i)
    if (user_data.substr(kMark.size()) == kResets[i]) return static_cast<OffsetReset>(i);
  return std::nullopt;
}

}  // namespace

/// One member's way into the next generation.
struct Consumers::Drive {
  std::string group;
  JoinRequest request;
  bool listed = false;  ///< in drives_, under request.member_id
  bool is_new = false;  ///< the member is not known to anybody yet
  std::vector<Reply> waiting;
};

void Consumers::join(const std::string& group, const ConsumerSpec& spec, Reply reply) {
  auto drive = std::make_shared<Drive>();
  drive->group = group;
  drive->is_new = true;
  JoinRequest& request = drive->request;
  request.instance_id = spec.instance_id;
  request.client_id = spec.client_id;
  request.client_host = spec.client_host;
  request.session_timeout_ms = spec.session_timeout_ms;
  request.rebalance_timeout_ms = spec.rebalance_timeout_ms;
  request.protocol_type = kConsumerProtocolType;
  request.can_skip_assignment = true;
  const Bytes subscription =
      encode(Subscription{spec.topics, Bytes(kMark) + Bytes(kResets[static_cast<size_t>(spec.reset)])});
  for (std::string_view name : {kRange, kRoundRobin}) request.protocols.push_back({std::string(name), subscription});
  drive->waiting.push_back(std::move(reply));
  start(std::move(drive));
}

Result<Membership> Consumers::membership(const std::string& group, const Coordinator::Standing& standing) const {
  Membership membership;
  membership.group = group;
  membership.member_id = standing.member.id;
  membership.generation = standing.generation;
  membership.protocol = standing.protocol;
  membership.info = standing.member;
  std::optional<OffsetReset> reset;
  if (!standing.member.protocols.empty())
    if (auto subscription = parse_subscription(standing.member.protocols.front().metadata)) {
      reset = reset_of(subscription->user_data);
      membership.topics = std::move(subscription->topics);
    }
  if (!reset)
    return fail(ErrorKind::kNotFound, "UNKNOWN_MEMBER_ID",
                fmt::format("member '{}' of group '{}' is run by a client of its own", standing.member.id, group));
  membership.reset = *reset;
  auto assignment = parse_assignment(standing.member.assignment);
  if (!assignment) return tl::unexpected(std::move(assignment.error()));
  membership.assignment = *std::move(assignment);
  return membership;
}

Result<Membership> Consumers::look(const std::string& group, const std::string& member) const {
  auto standing = coordinator_.standing(group, member);
  if (!standing) return tl::unexpected(std::move(standing.error()));
  return membership(group, *standing);
}

void Consumers::settle(const std::string& group, const std::string& member, Reply reply) {
  auto standing = coordinator_.standing(group, member);
  if (!standing) return reply(tl::unexpected(std::move(standing.error())));
  auto now = membership(group, *standing);
  if (!now) return reply(tl::unexpected(std::move(now.error())));
  // Topics that came or grew since the assignment: its leader asks for a new one.
  if (standing->state == GroupState::kStable && standing->is_leader && leaves_partitions_out(group))
    coordinator_.rebalance(group);
  else if (standing->state == GroupState::kStable && coordinator_.heartbeat(group, now->identity()))
    return reply(std::move(now));

  auto drive = std::make_shared<Drive>();
  {
    MutexLock lock(mutex_);
    auto& known = drives_[{group, member}];
    if (known) {
      known->waiting.push_back(std::move(reply));
      return;
    }
    known = drive;
    drive->group = group;
    drive->listed = true;
    drive->waiting.push_back(std::move(reply));
    JoinRequest& request = drive->request;
    request.member_id = member;
    request.instance_id = standing->member.instance_id;
    request.client_id = standing->member.client_id;
    request.client_host = standing->member.client_host;
    request.session_timeout_ms = standing->member.session_timeout_ms;
    request.rebalance_timeout_ms = standing->member.rebalance_timeout_ms;
    request.protocol_type = kConsumerProtocolType;
    request.protocols = standing->member.protocols;
  }
  start(std::move(drive));
}

void Consumers::start(std::shared_ptr<Drive> drive) {
  coordinator_.join(drive->group, drive->request, [this, drive](const JoinAnswer& answer) { joined(drive, answer); });
}

void Consumers::joined(const std::shared_ptr<Drive>& drive, const JoinAnswer& answer) {
  if (answer.error) return finish(drive, tl::unexpected(*answer.error));
  {
    MutexLock lock(mutex_);
    drive->request.member_id = answer.member_id;
    if (!drive->listed) drive->listed = drives_.try_emplace({drive->group, answer.member_id}, drive).second;
  }
  SyncRequest request;
  request.member_id = answer.member_id;
  request.instance_id = drive->request.instance_id;
  request.generation = answer.generation;
  if (answer.leader == answer.member_id && !answer.skip_assignment) {
    auto assignments = assign(answer);
    if (!assignments) return finish(drive, tl::unexpected(std::move(assignments.error())));
    request.assignments = *std::move(assignments);
  }
  coordinator_.sync(drive->group, request,
                    [this, drive](const SyncAnswer& synced_with) { synced(drive, synced_with); });
}

/// Another rebalance began meanwhile: it is joined as well. Each round waits for the whole group, so it cannot spin.
void Consumers::synced(const std::shared_ptr<Drive>& drive, const SyncAnswer& answer) {
  if (!answer.error) return finish(drive, {});
  if (answer.error->code != "REBALANCE_IN_PROGRESS") return finish(drive, tl::unexpected(*answer.error));
  start(drive);
}

void Consumers::finish(const std::shared_ptr<Drive>& drive, Status status) {
  std::vector<Reply> waiting;
  {
    MutexLock lock(mutex_);
    auto listed = drives_.find({drive->group, drive->request.member_id});
    if (listed != drives_.end() && listed->second == drive) drives_.erase(listed);
    waiting = std::move(drive->waiting);
  }
  // Whoever is told of an error does not know the member's id, and would join once more beside it.
  if (!status && drive->is_new) forget(drive->group, drive->request.member_id, drive->request.instance_id);
  Result<Membership> result =
      status ? look(drive->group, drive->request.member_id) : tl::unexpected(std::move(status.error()));
  for (Reply& reply : waiting) reply(result);
}

void Consumers::forget(const std::string& group, const std::string& member,
                       const std::optional<std::string>& instance_id) {
  // A static one is found again by its instance.
  if (member.empty() || instance_id) return;
  if (auto left = coordinator_.leave(group, {member, std::nullopt, kNoGeneration}); !left)
    spdlog::debug("group '{}': {}", group, left.error().message);
}

// --------------------------------------------------------------------------------------------------------- assignment

Result<std::map<std::string, uint32_t>> Consumers::partitions_of(const std::vector<std::string>& topics) const {
  auto view = log_.view();
  std::map<std::string, uint32_t> found;
  for (const std::string& name : topics) {
    if (found.contains(name) || !bus::check_topic_name(name)) continue;
    auto row = view->get(store::Table::kTopics, bus::topic_home(name).prefix());
    if (!row) return tl::unexpected(std::move(row.error()));
    if (!*row) continue;
    auto topic = bus::parse_topic((*row)->value, {});
    if (!topic) return tl::unexpected(std::move(topic.error()));
    found[name] = topic->partitions();
  }
  return found;
}

Result<std::vector<Assignment>> Consumers::assign(const JoinAnswer& answer) const {
  std::vector<Subscriber> members;
  std::set<std::string> wanted;
  for (const JoinAnswer::Member& member : answer.members) {
    auto subscription = parse_subscription(member.metadata);
    if (!subscription) continue;  // it asked for nothing that can be read
    wanted.insert(subscription->topics.begin(), subscription->topics.end());
    members.push_back({member.instance_id.value_or(member.id), member.id, std::move(subscription->topics)});
  }
  auto partitions = partitions_of({wanted.begin(), wanted.end()});
  if (!partitions) return tl::unexpected(std::move(partitions.error()));
  auto assigned = answer.protocol == kRoundRobin ? assign_round_robin(std::move(members), *partitions)
                                                 : assign_range(std::move(members), *partitions);
  std::vector<Assignment> out;
  for (const auto& [id, assignment] : assigned) out.push_back({id, encode(assignment)});
  return out;
}

bool Consumers::leaves_partitions_out(const std::string& group) const {
  auto info = coordinator_.describe(group);
  if (!info) return false;
  std::set<std::string> wanted;
  std::map<std::string, uint32_t> assigned;
  for (const MemberInfo& member : info->members) {
    if (member.protocols.empty()) continue;
    if (auto subscription = parse_subscription(member.protocols.front().metadata))
      wanted.insert(subscription->topics.begin(), subscription->topics.end());
    if (auto assignment = parse_assignment(member.assignment))
      for (const auto& [topic, partitions] : *assignment) assigned[topic] += static_cast<uint32_t>(partitions.size());
  }
  auto partitions = partitions_of({wanted.begin(), wanted.end()});
  if (!partitions) return false;
  return std::any_of(partitions->begin(), partitions->end(),
                     [&](const auto& topic) { return assigned[topic.first] < topic.second; });
}

}  // namespace millrace::group
