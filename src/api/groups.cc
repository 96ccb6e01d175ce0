#include "api/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/utf8.h"

namespace millrace::api {
namespace {

using store::Table;

/// Rows of topics read at once.
constexpr size_t kTopicsPerList = 1'000'000;

void append_assignment(std::string& out, const group::TopicPartitions& assignment) {
  out += '[';
  bool first = true;
  for (const auto& [topic, partitions] : assignment) {
    out += first ? R"({"topic":)" : R"(,{"topic":)";
    first = false;
    append_string(out, topic);
    out += fmt::format(R"(,"partitions":[{}]}})", fmt::join(partitions, ","));
  }
  out += ']';
}

/// Clients of other makes may send anything as their names.
void append_name(std::string& out, const std::string& text) {
  if (is_utf8(text))
    append_string(out, text);
  else
    append_string(out, to_hex(text));
}

void append_member(std::string& out, const group::MemberInfo& member, const std::string& leader) {
  out += R"({"memberId":)";
  append_name(out, member.id);
  out += R"(,"clientId":)";
  append_name(out, member.client_id);
  out += R"(,"clientHost":)";
  append_name(out, member.client_host);
  if (member.instance_id) {
    out += R"(,"instanceId":)";
    append_name(out, *member.instance_id);
  }
  out += fmt::format(R"(,"sessionTimeout":"{}ms","rebalanceTimeout":"{}ms","leader":{},"assignment":)",
                     member.session_timeout_ms, member.rebalance_timeout_ms, member.id == leader);
  append_assignment(out, group::parse_assignment(member.assignment).value_or(group::TopicPartitions()));
  out += '}';
}

}  // namespace

/// Topics by id: offsets carry the id, so that they never meet a topic made again under the name.
struct GroupsApi::Names {
  std::map<Uuid, std::string> by_id;
};

Result<GroupsApi::Names> GroupsApi::names(const bus::View& view) const {
  Names names;
  auto rows = view.list(Table::kTopics, Bytes(1, static_cast<char>(bus::HomeKind::kTopic)), "", kTopicsPerList);
  if (!rows) return tl::unexpected(std::move(rows.error()));
  for (const auto& [key, row] : *rows)
    if (auto topic = bus::parse_topic(row.value, {})) names.by_id[topic->id] = topic->name;
  return names;
}

std::string GroupsApi::list(const std::string& after, size_t limit) const {
  auto found = coordinator_.list(after, limit + 1);
  std::string out = R"({"groups":[)";
  for (size_t i = 0; i < found.size() && i < limit; ++i) {
    if (i > 0) out += ',';
    out += R"({"group":)";
    append_string(out, found[i].name);
    out += fmt::format(R"(,"state":"{}","generation":{},"members":{},"protocolType":)", to_string(found[i].state),
                       found[i].generation, found[i].members);
    append_name(out, found[i].protocol_type);
    out += '}';
  }
  out += ']';
  if (found.size() > limit) {
    out += R"(,"next":)";
    append_string(out, found[limit - 1].name);
  }
  return out + '}';
}

Result<std::string> GroupsApi::get(const std::string& group) const {
  auto info = coordinator_.describe(group);
  if (!info) return tl::unexpected(std::move(info.error()));
  auto view = log_.view();
  auto offsets = coordinator_.offsets(*view, group);
  if (!offsets) return tl::unexpected(std::move(offsets.error()));

  std::string out = R"({"group":)";
  append_string(out, group);
  out += fmt::format(R"(,"state":"{}","generation":{},"protocolType":)", to_string(info->state), info->generation);
  append_name(out, info->protocol_type);
  out += R"(,"protocol":)";
  append_name(out, info->protocol);
  out += R"(,"members":[)";
  std::map<std::pair<std::string, uint32_t>, std::string> owners;
  for (size_t i = 0; i < info->members.size(); ++i) {
    if (i > 0) out += ',';
    append_member(out, info->members[i], info->leader);
    if (auto assignment = group::parse_assignment(info->members[i].assignment))
      for (const auto& [topic, partitions] : *assignment)
        for (uint32_t partition : partitions) owners[{topic, partition}] = info->members[i].id;
  }
  out += R"(],"partitions":[)";

  const auto names = this->names(*view);
  if (!names) return tl::unexpected(names.error());
  std::map<std::pair<std::string, uint32_t>, group::CommittedOffset> rows;
  for (auto& offset : *offsets)
    if (auto name = names->by_id.find(offset.at.topic); name != names->by_id.end())
      rows[{name->second, offset.at.partition}] = std::move(offset);
  std::map<std::string, Uuid> ids;
  for (const auto& [id, name] : names->by_id) ids[name] = id;
  for (const auto& [where, owner] : owners) rows.try_emplace(where);

  uint64_t total = 0;
  bool first = true;
  for (const auto& [where, offset] : rows) {
    auto id = ids.find(where.first);
    auto state = id == ids.end() ? std::nullopt : view->partition({id->second, where.second});
    if (!state) continue;
    const bool committed = offset.commit_ms != 0 || offset.at.topic != Uuid();
    out += first ? R"({"topic":)" : R"(,{"topic":)";
    first = false;
    append_string(out, where.first);
    out += fmt::format(R"(,"partition":{},"logStartOffset":"{}","logEndOffset":"{}")", where.second, state->log_start,
                       state->high_watermark);
    if (committed) {
      const uint64_t lag = state->high_watermark - std::min(state->high_watermark, offset.next_offset);
      total += lag;
      out += fmt::format(R"(,"offset":"{}","lag":"{}","leaderEpoch":{},"metadata":)", offset.next_offset, lag,
                         offset.leader_epoch);
      append_name(out, offset.metadata);
      out += R"(,"committedAt":)";
      append_string(out, format_time(offset.commit_ms).value_or(""));
    }
    if (auto owner = owners.find(where); owner != owners.end()) {
      out += R"(,"memberId":)";
      append_name(out, owner->second);
    }
    out += '}';
  }
  return out + fmt::format(R"(],"totalLag":"{}"}})", total);
}

void GroupsApi::remove(const std::string& group, Reply reply) {
  coordinator_.remove(group, [reply = std::move(reply)](Status status) {
    if (!status) return reply(tl::unexpected(std::move(status.error())));
    reply(std::string());
  });
}

std::vector<GroupsApi::Lag> GroupsApi::lags(size_t limit) const {
  std::vector<Lag> out;
  auto groups = coordinator_.list("", limit);
  if (groups.empty()) return out;
  auto view = log_.view();
  const auto names = this->names(*view);
  if (!names) return out;  // Metrics; requests say what is wrong.
  for (const auto& group : groups) {
    auto offsets = coordinator_.offsets(*view, group.name);
    if (!offsets) continue;
    for (const auto& offset : *offsets) {
      auto name = names->by_id.find(offset.at.topic);
      auto state = view->partition(offset.at);
      if (name == names->by_id.end() || !state) continue;
      if (out.size() == limit) return out;
      out.push_back({group.name, name->second, offset.at.partition,
                     state->high_watermark - std::min(state->high_watermark, offset.next_offset)});
    }
  }
  return out;
}

// -------------------------------------------------------------------------------------------------------------- reset

struct GroupsApi::Move {
  std::string topic;
  bus::TopicPartition at;
  std::optional<uint64_t> from;
  uint64_t to = 0;
};

namespace {

/// What "to" says, for one partition.
Result<uint64_t> target_of(const Json& to, const bus::View& view, const bus::TopicPartition& at,
                           const std::string& topic) {
  const bus::PartitionState state = view.partition(at).value_or(bus::PartitionState{});
  if (to.is_string() && to == "earliest") return state.log_start;
  if (to.is_string() && to == "latest") return state.high_watermark;
  if (!to.is_object())
    return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD",
                R"('to' is "earliest", "latest", {"offset":N} or {"time":T})", "/to");
  auto fields = Fields::of(to, "/to", {"offset", "time"});
  if (!fields) return tl::unexpected(std::move(fields.error()));
  const Json* offset = fields->find("offset");
  const Json* time = fields->find("time");
  if ((offset == nullptr) == (time == nullptr))
    return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD", "'to' has either 'offset' or 'time'", "/to");
  if (time != nullptr) {
    auto ms = to_timestamp(*time, "/to/time");
    if (!ms) return tl::unexpected(std::move(ms.error()));
    return view.offset_for_time(at, *ms);
  }
  auto number = to_integer(*offset, "/to/offset", 0, INT64_MAX);
  if (!number) return tl::unexpected(std::move(number.error()));
  const auto wanted = static_cast<uint64_t>(*number);
  if (wanted < state.log_start || wanted > state.high_watermark)
    return fail(ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE",
                fmt::format("offset {} of topic '{}', partition {} is outside [{}, {}]", wanted, topic, at.partition,
                            state.log_start, state.high_watermark),
                "/to/offset");
  return wanted;
}

Result<std::vector<std::string>> topics_of(const Fields& fields) {
  std::vector<std::string> topics;
  if (fields.find("topic") != nullptr) {
    auto name = fields.string("topic");
    if (!name) return tl::unexpected(std::move(name.error()));
    topics.push_back(*std::move(name));
  }
  if (const Json* list = fields.find("topics")) {
    const bool strings =
        list->is_array() && std::all_of(list->begin(), list->end(), [](const Json& one) { return one.is_string(); });
    if (!strings || list->size() > 1'000)
      return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD", "'topics' is a list of at most 1000 names",
                  fields.pointer("topics"));
    for (const Json& one : *list) topics.push_back(one.get<std::string>());
  }
  std::sort(topics.begin(), topics.end());
  topics.erase(std::unique(topics.begin(), topics.end()), topics.end());
  return topics;
}

}  // namespace

Result<std::vector<GroupsApi::Move>> GroupsApi::plan_reset(const std::string& group, const Json& json) const {
  auto fields = Fields::of(json, "", {"topic", "topics", "partitions", "to", "dryRun"});
  if (!fields) return tl::unexpected(std::move(fields.error()));
  const Json* to = fields->find("to");
  if (to == nullptr) return fail(ErrorKind::kInvalidArgument, "MISSING_FIELD", "the field 'to' is missing", "/to");
  auto topics = topics_of(*fields);
  if (!topics) return tl::unexpected(std::move(topics.error()));
  auto info = coordinator_.describe(group);
  if (!info) return tl::unexpected(std::move(info.error()));
  if (info->state != group::GroupState::kEmpty)
    return fail(ErrorKind::kConflict, "GROUP_NOT_EMPTY",
                fmt::format("group '{}' has {} members; its offsets can be moved when they have left", group,
                            info->members.size()));
  std::optional<std::vector<uint32_t>> only;
  if (const Json* list = fields->find("partitions")) {
    if (!list->is_array())
      return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD", "'partitions' is a list of numbers", "/partitions");
    only.emplace();
    for (size_t i = 0; i < list->size(); ++i) {
      auto number = to_integer((*list)[i], fmt::format("/partitions/{}", i), 0, bus::kMaxPartitionsOfTopic - 1);
      if (!number) return tl::unexpected(std::move(number.error()));
      only->push_back(static_cast<uint32_t>(*number));
    }
    std::sort(only->begin(), only->end());
    only->erase(std::unique(only->begin(), only->end()), only->end());
  }

  auto view = log_.view();
  auto offsets = coordinator_.offsets(*view, group);
  if (!offsets) return tl::unexpected(std::move(offsets.error()));
  std::map<bus::TopicPartition, uint64_t> committed;
  for (const auto& offset : *offsets) committed[offset.at] = offset.next_offset;
  std::vector<Move> moves;
  auto add = [&](const std::string& topic, const bus::TopicPartition& at) -> Status {
    auto target = target_of(*to, *view, at, topic);
    if (!target) return tl::unexpected(std::move(target.error()));
    auto from = committed.find(at);
    moves.push_back({topic, at, from == committed.end() ? std::nullopt : std::optional(from->second), *target});
    return {};
  };
  if (topics->empty()) {
    const auto names = this->names(*view);
    if (!names) return tl::unexpected(names.error());
    for (const auto& [at, offset] : committed) {
      auto name = names->by_id.find(at.topic);
      const bool wanted = !only || std::find(only->begin(), only->end(), at.partition) != only->end();
      if (name != names->by_id.end() && wanted) MILLRACE_TRY(add(name->second, at));
    }
    return moves;
  }
  for (const std::string& name : *topics) {
    auto topic = topics_.find(*view, name);
    if (!topic) return tl::unexpected(std::move(topic.error()));
    std::vector<uint32_t> partitions = only.value_or(std::vector<uint32_t>());
    if (!only)
      for (uint32_t i = 0; i < topic->partitions(); ++i) partitions.push_back(i);
    for (uint32_t partition : partitions) {
      if (partition >= topic->partitions())
        return fail(
            ErrorKind::kNotFound, "UNKNOWN_PARTITION",
            fmt::format("topic '{}' has no partition {}, only 0 to {}", name, partition, topic->partitions() - 1));
      MILLRACE_TRY(add(name, {topic->id, partition}));
    }
  }
  return moves;
}

void GroupsApi::reset_offsets(const std::string& group, std::string_view body, Reply reply) {
  auto json = parse_json(body);
  if (!json) return reply(tl::unexpected(std::move(json.error())));
  auto moves = plan_reset(group, *json);
  if (!moves) return reply(tl::unexpected(std::move(moves.error())));
  bool dry = false;
  if (auto given = json->find("dryRun"); given != json->end()) {
    if (!given->is_boolean())
      return reply(fail(ErrorKind::kInvalidArgument, "INVALID_FIELD", "'dryRun' is true or false", "/dryRun"));
    dry = given->get<bool>();
  }
  std::string out = fmt::format(R"({{"dryRun":{},"partitions":[)", dry);
  std::vector<bus::ConsumedOffset> offsets;
  for (const Move& move : *moves) {
    if (!offsets.empty()) out += ',';
    out += R"({"topic":)";
    append_string(out, move.topic);
    out += fmt::format(R"(,"partition":{},"from":{},"to":"{}"}})", move.at.partition,
                       move.from ? fmt::format("\"{}\"", *move.from) : "null", move.to);
    bus::ConsumedOffset offset;
    offset.from = move.at;
    offset.next_offset = move.to;
    offsets.push_back(std::move(offset));
  }
  out += "]}";
  if (dry || offsets.empty()) return reply(std::move(out));
  coordinator_.commit(group, {}, std::move(offsets), [reply = std::move(reply), out](Status status) {
    if (!status) return reply(tl::unexpected(std::move(status.error())));
    reply(out);
  });
}

// ------------------------------------------------------------------------------------------------------------- member

std::string GroupsApi::to_json(const group::Membership& member) const {
  std::string out = R"({"group":)";
  append_string(out, member.group);
  out += R"(,"memberId":)";
  append_name(out, member.member_id);
  out += fmt::format(R"(,"generation":{},"protocol":"{}","topics":[)", member.generation, member.protocol);
  for (size_t i = 0; i < member.topics.size(); ++i) {
    if (i > 0) out += ',';
    append_string(out, member.topics[i]);
  }
  out += fmt::format(R"(],"sessionTimeout":"{}ms","rebalanceTimeout":"{}ms","assignment":)",
                     member.info.session_timeout_ms, member.info.rebalance_timeout_ms);
  append_assignment(out, member.assignment);
  return out + '}';
}

Result<std::string> GroupsApi::member(const std::string& group, const std::string& member) const {
  auto found = consumers_.look(group, member);
  if (!found) return tl::unexpected(std::move(found.error()));
  return to_json(*found);
}

Status GroupsApi::leave(const std::string& group, const std::string& member) {
  auto found = consumers_.look(group, member);
  if (!found) return tl::unexpected(std::move(found.error()));
  return coordinator_.leave(group, {member, std::nullopt, found->generation});
}

}  // namespace millrace::api
