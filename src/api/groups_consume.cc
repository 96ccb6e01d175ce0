// Members over HTTP: joining, reading from the committed positions, committing.

#include <fmt/format.h>

#include <algorithm>

#include "api/batch_records.h"
#include "api/groups.h"
#include "api/record_json.h"
#include "config/value.h"

namespace millrace::api {
namespace {

constexpr size_t kMaxTopicsOfMember = 1'000;
constexpr size_t kMaxClientIdBytes = 255;

Result<int64_t> duration_of(const Fields& fields, std::string_view name, int64_t otherwise) {
  const Json* given = fields.find(name);
  if (given == nullptr) return otherwise;
  auto invalid = [&] {
    return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD", fmt::format("'{}' is a duration, as \"30s\"", name),
                fields.pointer(name));
  };
  if (!given->is_string()) return invalid();
  auto parsed = config::parse_duration(given->get<std::string>());
  if (!parsed) return invalid();
  return parsed->count();
}

Result<std::string> short_text(const Fields& fields, std::string_view name, std::string otherwise) {
  if (fields.find(name) == nullptr) return otherwise;
  auto text = fields.string(name);
  if (!text) return text;
  if (text->empty() || text->size() > kMaxClientIdBytes)
    return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD",
                fmt::format("'{}' has 1 to {} bytes", name, kMaxClientIdBytes), fields.pointer(name));
  return text;
}

Result<group::ConsumerSpec> spec_of(std::string_view body, std::string_view peer) {
  auto json = parse_json(body);
  if (!json) return tl::unexpected(std::move(json.error()));
  auto fields = Fields::of(
      *json, "", {"topics", "clientId", "instanceId", "sessionTimeout", "rebalanceTimeout", "autoOffsetReset"});
  if (!fields) return tl::unexpected(std::move(fields.error()));
  group::ConsumerSpec spec;
  spec.client_host = peer;
  const Json* topics = fields->find("topics");
  if (topics == nullptr || !topics->is_array() || topics->empty() || topics->size() > kMaxTopicsOfMember)
    return fail(ErrorKind::kInvalidArgument, topics == nullptr ? "MISSING_FIELD" : "INVALID_FIELD",
                fmt::format("'topics' is a list of 1 to {} names", kMaxTopicsOfMember), "/topics");
  for (size_t i = 0; i < topics->size(); ++i) {
    const std::string pointer = fmt::format("/topics/{}", i);
    if (!(*topics)[i].is_string())
      return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD", "a topic's name is a string", pointer);
    spec.topics.push_back((*topics)[i].get<std::string>());
    if (auto checked = bus::check_topic_name(spec.topics.back()); !checked) {
      checked.error().pointer = pointer;
      return tl::unexpected(std::move(checked.error()));
    }
  }
  std::sort(spec.topics.begin(), spec.topics.end());
  spec.topics.erase(std::unique(spec.topics.begin(), spec.topics.end()), spec.topics.end());
  auto client = short_text(*fields, "clientId", "http");
  if (!client) return tl::unexpected(std::move(client.error()));
  spec.client_id = *std::move(client);
  if (fields->find("instanceId") != nullptr) {
    auto instance = short_text(*fields, "instanceId", "");
    if (!instance) return tl::unexpected(std::move(instance.error()));
    spec.instance_id = *std::move(instance);
  }
  auto session = duration_of(*fields, "sessionTimeout", spec.session_timeout_ms);
  if (!session) return tl::unexpected(std::move(session.error()));
  auto rebalance = duration_of(*fields, "rebalanceTimeout", spec.rebalance_timeout_ms);
  if (!rebalance) return tl::unexpected(std::move(rebalance.error()));
  spec.session_timeout_ms = *session;
  spec.rebalance_timeout_ms = *rebalance;
  if (fields->find("autoOffsetReset") != nullptr) {
    auto reset = fields->string("autoOffsetReset");
    if (!reset) return tl::unexpected(std::move(reset.error()));
    if (*reset == "earliest")
      spec.reset = group::OffsetReset::kEarliest;
    else if (*reset == "none")
      spec.reset = group::OffsetReset::kNone;
    else if (*reset != "latest")
      return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD",
                  fmt::format("'autoOffsetReset' is earliest, latest or none, not '{}'", *reset), "/autoOffsetReset");
  }
  return spec;
}

}  // namespace

void GroupsApi::join(const std::string& group, std::string_view body, std::string_view peer, JoinReply reply) {
  auto refuse = [&](Error why) { reply(tl::unexpected(std::move(why))); };
  auto spec = spec_of(body, peer);
  if (!spec) return refuse(std::move(spec.error()));
  auto view = log_.view();
  for (const std::string& name : spec->topics)
    if (auto topic = topics_.find(*view, name); !topic) return refuse(std::move(topic.error()));
  consumers_.join(group, *spec, [this, reply = std::move(reply)](const Result<group::Membership>& member) {
    pin(member, [this, reply, member](Result<group::Membership> pinned) {
      const bool told = pinned ? reply(to_json(*pinned)) : reply(tl::unexpected(pinned.error()));
      if (member && !(pinned && told)) consumers_.forget(member->group, member->member_id, member->info.instance_id);
    });
  });
}

void GroupsApi::settle(const std::string& group, const std::string& member, MemberReply reply) {
  consumers_.settle(group, member, [this, reply = std::move(reply)](Result<group::Membership> settled) {
    pin(std::move(settled), reply);
  });
}

/// A group's offsets as one view has them: for few partitions each is looked up, for many all are read at once, which
/// is several times quicker.
class GroupsApi::Committed {
 public:
  static Result<Committed> of(const group::Coordinator& coordinator, const bus::View& view,
                              const group::Membership& member) {
    Committed committed(coordinator, view, member.group);
    size_t partitions = 0;
    for (const auto& [topic, assigned] : member.assignment) partitions += assigned.size();
    if (partitions <= kFew) return committed;
    auto all = coordinator.offsets(view, member.group);
    if (!all) return tl::unexpected(std::move(all.error()));
    committed.all_ = *std::move(all);
    return committed;
  }
  Result<std::optional<group::CommittedOffset>> find(const bus::TopicPartition& at) const {
    if (!all_) return coordinator_.offset(view_, group_, at);
    auto found =
        std::lower_bound(all_->begin(), all_->end(), at,
                         [](const group::CommittedOffset& one, const auto& wanted) { return one.at < wanted; });
    if (found == all_->end() || found->at != at) return std::nullopt;
    return *found;
  }

 private:
  static constexpr size_t kFew = 64;
  Committed(const group::Coordinator& coordinator, const bus::View& view, const std::string& group)
      : coordinator_(coordinator), view_(view), group_(group) {}

  const group::Coordinator& coordinator_;
  const bus::View& view_;
  const std::string& group_;
  std::optional<std::vector<group::CommittedOffset>> all_;  ///< in order
};

/// Where the member reads one partition. `pinned` turns false when that place is the log's end as it is now.
Result<uint64_t> GroupsApi::position(const Committed& offsets, const group::Membership& member,
                                     const std::string& topic, const bus::TopicPartition& at,
                                     const bus::PartitionState& state, bool& pinned) const {
  auto committed = offsets.find(at);
  if (!committed) return tl::unexpected(std::move(committed.error()));
  if (*committed && (*committed)->next_offset >= state.log_start && (*committed)->next_offset <= state.high_watermark)
    return (*committed)->next_offset;
  if (member.reset == group::OffsetReset::kEarliest) return state.log_start;
  if (member.reset == group::OffsetReset::kLatest) {
    pinned = false;
    return state.high_watermark;
  }
  if (*committed)
    return fail(ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE",
                fmt::format("committed offset {} of topic '{}', partition {} is outside [{}, {}]",
                            (*committed)->next_offset, topic, at.partition, state.log_start, state.high_watermark));
  return fail(ErrorKind::kConflict, "NO_COMMITTED_OFFSET",
              fmt::format("group '{}' has no offset for topic '{}', partition {}, and the member resets to none",
                          member.group, topic, at.partition));
}

/// "latest" is the log's end at one moment: it is committed, or records that come between two reads would be passed
/// over.
void GroupsApi::pin(Result<group::Membership> member, MemberReply reply) {
  if (!member || member->reset != group::OffsetReset::kLatest) return reply(std::move(member));
  auto view = log_.view();
  auto committed = Committed::of(coordinator_, *view, *member);
  if (!committed) return reply(tl::unexpected(std::move(committed.error())));
  std::vector<bus::ConsumedOffset> offsets;
  for (const auto& [name, partitions] : member->assignment) {
    auto topic = topics_.find(*view, name);
    if (!topic) continue;
    for (uint32_t partition : partitions) {
      const bus::TopicPartition at{topic->id, partition};
      auto state = view->partition(at);
      if (!state) continue;
      bool pinned = true;
      auto from = position(*committed, *member, name, at, *state, pinned);
      if (!from) return reply(tl::unexpected(std::move(from.error())));
      if (pinned) continue;
      bus::ConsumedOffset offset;
      offset.from = at;
      offset.next_offset = *from;
      offsets.push_back(std::move(offset));
    }
  }
  if (offsets.empty()) return reply(std::move(member));
  const std::string group = member->group;
  const group::MemberIdentity identity = member->identity();
  coordinator_.commit(
      group, identity, std::move(offsets), [member = *std::move(member), reply = std::move(reply)](Status status) {
        // In a rebalance the next reader of the partition does it. Where writes are refused nothing
        // can be passed over.
        if (!status && status.error().kind != ErrorKind::kConflict && status.error().code != "DISK_RESERVE")
          return reply(tl::unexpected(std::move(status.error())));
        reply(member);
      });
}

Result<GroupRead> GroupsApi::read(const group::Membership& member, size_t limit, size_t max_bytes) const {
  auto view = log_.view();
  struct Part {
    const std::string* topic;
    bus::TopicPartition at;
  };
  std::vector<Part> parts;
  for (const auto& [name, partitions] : member.assignment) {
    auto topic = topics_.find(*view, name);
    if (!topic) continue;  // deleted: the next rebalance takes it out
    for (uint32_t partition : partitions) parts.push_back({&name, {topic->id, partition}});
  }
  // Each read begins with another partition, so that a busy one does not starve the others.
  if (!parts.empty())
    std::rotate(parts.begin(), parts.begin() + turn_++ % static_cast<uint32_t>(parts.size()), parts.end());

  auto committed = Committed::of(coordinator_, *view, member);
  if (!committed) return tl::unexpected(std::move(committed.error()));
  GroupRead answer;
  answer.json = fmt::format(R"({{"generation":{},"assignment":[)", member.generation);
  bool first = true;
  for (const auto& [topic, partitions] : member.assignment) {
    answer.json +=
        fmt::format(R"({}{{"topic":"{}","partitions":[{}]}})", first ? "" : ",", topic, fmt::join(partitions, ","));
    first = false;
  }
  answer.json += R"(],"records":[)";
  std::string next;
  size_t count = 0, bytes = 0;
  bool moved = false;
  for (const Part& part : parts) {
    auto state = view->partition(part.at);
    if (!state) continue;
    bool pinned = true;
    auto from = position(*committed, member, *part.topic, part.at, *state, pinned);
    if (!from) return tl::unexpected(std::move(from.error()));
    answer.at.push_back({part.at, *from});
    if (*from == state->high_watermark || count == limit || bytes >= max_bytes) continue;
    auto batches = view->fetch(part.at, *from, max_bytes - bytes);
    if (!batches) return tl::unexpected(std::move(batches.error()));
    uint64_t offset = *from;
    for (const Bytes& batch : *batches) {
      bytes += batch.size();
      auto reached = walk_batch(batch, offset, *part.topic, part.at.partition, [&](const bus::RecordView& record) {
        if (count == limit) return false;
        if (count++ > 0) answer.json += ',';
        answer.json += R"({"topic":")" + *part.topic + R"(",)";
        std::string one;
        append_record(one, part.at.partition, record);
        answer.json += one.substr(1);
        return true;
      });
      if (!reached) {
        // What was read before the bad place is good; the place itself is told when it comes first.
        if (count > 0) break;
        return tl::unexpected(std::move(reached.error()));
      }
      offset = *reached;
      if (count == limit) break;
    }
    if (offset == *from) continue;
    moved = true;
    next += fmt::format(R"({}{{"topic":"{}","partition":{},"offset":"{}"}})", next.empty() ? "" : ",", *part.topic,
                        part.at.partition, offset);
  }
  answer.json += R"(],"next":[)" + next + "]}";
  answer.empty = !moved;
  return answer;
}

// ------------------------------------------------------------------------------------------------------------- commit

Result<std::vector<bus::ConsumedOffset>> GroupsApi::parse_offsets(const group::Membership& member,
                                                                  const Json& list) const {
  if (!list.is_array() || list.empty() || list.size() > kMaxOffsetsPerRequest)
    return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD",
                fmt::format("'offsets' is a list of 1 to {} offsets", kMaxOffsetsPerRequest), "/offsets");
  auto view = log_.view();
  std::vector<bus::ConsumedOffset> offsets;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string pointer = fmt::format("/offsets/{}", i);
    auto fields = Fields::of(list[i], pointer, {"topic", "partition", "offset", "metadata", "leaderEpoch"});
    if (!fields) return tl::unexpected(std::move(fields.error()));
    auto name = fields->string("topic");
    if (!name) return tl::unexpected(std::move(name.error()));
    auto number = [&](std::string_view field, int64_t low, int64_t high) -> Result<int64_t> {
      const Json* given = fields->find(field);
      if (given == nullptr)
        return fail(ErrorKind::kInvalidArgument, "MISSING_FIELD", fmt::format("the field '{}' is missing", field),
                    fields->pointer(field));
      return to_integer(*given, fields->pointer(field), low, high);
    };
    auto partition = number("partition", 0, bus::kMaxPartitionsOfTopic - 1);
    if (!partition) return tl::unexpected(std::move(partition.error()));
    auto next = number("offset", 0, INT64_MAX);
    if (!next) return tl::unexpected(std::move(next.error()));
    bus::ConsumedOffset offset;
    if (fields->find("leaderEpoch") != nullptr) {
      auto epoch = number("leaderEpoch", -1, INT32_MAX);
      if (!epoch) return tl::unexpected(std::move(epoch.error()));
      offset.leader_epoch = static_cast<int32_t>(*epoch);
    }
    if (fields->find("metadata") != nullptr) {
      auto metadata = fields->string("metadata");
      if (!metadata) return tl::unexpected(std::move(metadata.error()));
      if (metadata->size() > bus::kMaxOffsetMetadataBytes)
        return fail(ErrorKind::kInvalidArgument, "OFFSET_METADATA_TOO_LARGE",
                    fmt::format("the metadata has {} bytes; at most {} are taken", metadata->size(),
                                bus::kMaxOffsetMetadataBytes),
                    fields->pointer("metadata"));
      offset.metadata = *std::move(metadata);
    }
    auto assigned = member.assignment.find(*name);
    if (assigned == member.assignment.end() ||
        std::find(assigned->second.begin(), assigned->second.end(), *partition) == assigned->second.end())
      return fail(ErrorKind::kConflict, "PARTITION_NOT_ASSIGNED",
                  fmt::format("topic '{}', partition {} is not assigned to member '{}' in generation {}", *name,
                              *partition, member.member_id, member.generation),
                  pointer);
    auto topic = topics_.find(*view, *name);
    if (!topic) return tl::unexpected(std::move(topic.error()));
    offset.from = {topic->id, static_cast<uint32_t>(*partition)};
    offset.next_offset = static_cast<uint64_t>(*next);
    if (auto state = view->partition(offset.from); state && offset.next_offset > state->high_watermark)
      return fail(ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE",
                  fmt::format("offset {} of topic '{}', partition {} is behind the log's end {}", *next, *name,
                              *partition, state->high_watermark),
                  fields->pointer("offset"));
    offsets.push_back(std::move(offset));
  }
  return offsets;
}

void GroupsApi::commit(const std::string& group, const std::string& member_id, std::string_view body, Reply reply) {
  auto json = parse_json(body);
  if (!json) return reply(tl::unexpected(std::move(json.error())));
  auto fields = Fields::of(*json, "", {"generation", "offsets"});
  if (!fields) return reply(tl::unexpected(std::move(fields.error())));
  const Json* list = fields->find("offsets");
  if (list == nullptr)
    return reply(fail(ErrorKind::kInvalidArgument, "MISSING_FIELD", "the field 'offsets' is missing", "/offsets"));
  auto member = consumers_.look(group, member_id);
  if (!member) return reply(tl::unexpected(std::move(member.error())));
  if (const Json* given = fields->find("generation")) {
    auto generation = to_integer(*given, "/generation", 0, INT32_MAX);
    if (!generation) return reply(tl::unexpected(std::move(generation.error())));
    if (*generation != member->generation)
      return reply(fail(ErrorKind::kConflict, "ILLEGAL_GENERATION",
                        fmt::format("group '{}' is at generation {}, not {}", group, member->generation, *generation)));
  }
  auto offsets = parse_offsets(*member, *list);
  if (!offsets) return reply(tl::unexpected(std::move(offsets.error())));
  coordinator_.commit(group, member->identity(), *std::move(offsets), [reply = std::move(reply)](Status status) {
    if (!status) return reply(tl::unexpected(std::move(status.error())));
    reply(std::string());
  });
}

}  // namespace millrace::api
