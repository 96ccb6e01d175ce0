#include "api/topics.h"

#include <fmt/format.h>

#include "api/topic_configs.h"
#include "crypto/hash.h"
#include "proto/bus.pb.h"

namespace millrace::api {
namespace {

using store::Table;

/// All topics' rows: their homes' prefixes begin with this.
Bytes all_topics() {
  return Bytes(1, static_cast<char>(bus::HomeKind::kTopic));
}

}  // namespace

struct TopicsApi::Stored {
  proto::TopicRow row;
  bus::Version version;
};

Result<TopicsApi::Stored> TopicsApi::read(const bus::View& view, std::string_view name) const {
  MILLRACE_TRY(bus::check_topic_name(name));
  auto row = view.get(Table::kTopics, bus::topic_home(name).prefix());
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) return fail(ErrorKind::kNotFound, "UNKNOWN_TOPIC", fmt::format("there is no topic '{}'", name));
  auto parsed = bus::parse_topic_row((*row)->value);
  if (!parsed) return tl::unexpected(std::move(parsed.error()));
  return Stored{*std::move(parsed), (*row)->version};
}

Result<bus::Topic> TopicsApi::find(const bus::View& view, std::string_view name) const {
  auto stored = read(view, name);
  if (!stored) return tl::unexpected(std::move(stored.error()));
  return bus::topic_of(stored->row, options_.defaults);
}

std::string TopicsApi::to_json(const bus::Topic& topic) const {
  std::string out = fmt::format(R"({{"name":"{}","id":"{}","partitions":{},"configs":)", topic.name,
                                topic.id.to_string(), topic.partitions());
  append_configs(out, topic.settings);
  out += R"(,"createdAt":)";
  append_string(out, format_time(topic.created_ms).value_or(""));
  out += '}';
  return out;
}

void TopicsApi::create(std::string_view body, std::optional<std::string> idempotency_key, Reply reply) {
  auto prepared = [&]() -> Result<proto::TopicRow> {
    auto json = parse_json(body);
    if (!json) return tl::unexpected(std::move(json.error()));
    auto fields = Fields::of(*json, "", {"name", "partitions", "configs"});
    if (!fields) return tl::unexpected(std::move(fields.error()));
    auto name = fields->string("name");
    if (!name) return tl::unexpected(std::move(name.error()));
    if (auto checked = bus::check_topic_name(*name); !checked) {
      checked.error().pointer = "/name";
      return tl::unexpected(std::move(checked.error()));
    }
    int64_t partitions = options_.default_partitions;
    if (const Json* given = fields->find("partitions")) {
      auto number = to_integer(*given, "/partitions", 1, bus::kMaxPartitionsOfTopic);
      if (!number) return tl::unexpected(std::move(number.error()));
      partitions = *number;
    }
    proto::TopicRow row;
    if (const Json* configs = fields->find("configs"))
      MILLRACE_TRY(apply_configs(*configs, "/configs", *row.mutable_config()));
    row.set_id(Bytes(Uuid::random().view()));
    row.set_name(*name);
    row.set_created_ms(clock_.wall_ms());
    uint32_t first = log_.allocate_partition_ids(static_cast<uint32_t>(partitions));
    for (uint32_t i = 0; i < partitions; ++i) row.add_partitions(first + i);
    return row;
  }();
  if (!prepared) return reply(tl::unexpected(std::move(prepared.error())));

  bus::Home home = bus::topic_home(prepared->name());
  bus::Commit commit(home);
  commit.conditions.push_back({Table::kTopics, Bytes(home.prefix()), bus::kAbsent});
  commit.state.push_back({Table::kTopics, Bytes(home.prefix()), prepared->SerializeAsString()});
  std::string answer = to_json(bus::topic_of(*prepared, options_.defaults));
  if (idempotency_key)
    commit.idempotency = bus::IdempotencyKey{crypto::digest_of({"POST /v1/topics", *idempotency_key}),
                                             crypto::digest_of({body}), answer};
  commit.done = [reply = std::move(reply), answer, name = prepared->name()](bus::CommitResult result) {
    if (result) return reply(result->replayed ? std::move(result->answer) : answer);
    if (result.error().kind == ErrorKind::kConflict && result.error().code == "CONDITION_FAILED")
      return reply(fail(ErrorKind::kAlreadyExists, "TOPIC_EXISTS", fmt::format("topic '{}' exists already", name)));
    reply(tl::unexpected(std::move(result.error())));
  };
  log_.submit(std::move(commit));
}

void TopicsApi::change(std::string_view name, std::string_view body, Reply reply) {
  auto prepared = [&]() -> Result<Stored> {
    auto stored = read(*log_.view(), name);
    if (!stored) return stored;
    auto json = parse_json(body);
    if (!json) return tl::unexpected(std::move(json.error()));
    auto fields = Fields::of(*json, "", {"configs"});
    if (!fields) return tl::unexpected(std::move(fields.error()));
    const Json* configs = fields->find("configs");
    if (configs == nullptr)
      return fail(ErrorKind::kInvalidArgument, "MISSING_FIELD", "the field 'configs' is missing", "/configs");
    MILLRACE_TRY(apply_configs(*configs, "/configs", *stored->row.mutable_config()));
    return stored;
  }();
  if (!prepared) return reply(tl::unexpected(std::move(prepared.error())));
  bus::Home home = bus::topic_home(name);
  bus::Commit commit(home);
  commit.conditions.push_back({Table::kTopics, Bytes(home.prefix()), prepared->version});
  commit.state.push_back({Table::kTopics, Bytes(home.prefix()), prepared->row.SerializeAsString()});
  commit.done = [reply = std::move(reply), answer = to_json(bus::topic_of(prepared->row, options_.defaults)),
                 topic = std::string(name)](bus::CommitResult result) {
    if (result) return reply(answer);
    if (result.error().code == "CONDITION_FAILED")
      return reply(fail(ErrorKind::kConflict, "TOPIC_CHANGED",
                        fmt::format("topic '{}' was changed by somebody else meanwhile; look again", topic)));
    reply(tl::unexpected(std::move(result.error())));
  };
  log_.submit(std::move(commit));
}

void TopicsApi::remove(std::string_view name, Reply reply) {
  auto stored = read(*log_.view(), name);
  if (!stored) return reply(tl::unexpected(std::move(stored.error())));
  bus::Home home = bus::topic_home(name);
  bus::Commit commit(home);
  commit.conditions.push_back({Table::kTopics, Bytes(home.prefix()), stored->version});
  commit.state.push_back({Table::kTopics, Bytes(home.prefix()), std::nullopt});
  commit.done = [reply = std::move(reply), topic = std::string(name)](bus::CommitResult result) {
    if (result) return reply(std::string());
    if (result.error().code == "CONDITION_FAILED")
      return reply(fail(ErrorKind::kConflict, "TOPIC_CHANGED",
                        fmt::format("topic '{}' was changed by somebody else meanwhile; look again", topic)));
    reply(tl::unexpected(std::move(result.error())));
  };
  log_.submit(std::move(commit));
}

Result<std::string> TopicsApi::get(std::string_view name) const {
  auto topic = find(*log_.view(), name);
  if (!topic) return tl::unexpected(std::move(topic.error()));
  return to_json(*topic);
}

Result<std::string> TopicsApi::list(std::string_view after, size_t limit) const {
  Bytes from;
  if (!after.empty()) {
    MILLRACE_TRY(bus::check_topic_name(after));
    from = bus::topic_home(after).prefix();
  }
  auto rows = log_.view()->list(Table::kTopics, all_topics(), from, limit + 1);
  if (!rows) return tl::unexpected(std::move(rows.error()));
  std::string out = R"({"topics":[)";
  std::string last;
  for (size_t i = 0; i < rows->size() && i < limit; ++i) {
    auto topic = bus::parse_topic((*rows)[i].second.value, options_.defaults);
    if (!topic) return tl::unexpected(std::move(topic.error()));
    if (i > 0) out += ',';
    out += to_json(*topic);
    last = topic->name;
  }
  out += ']';
  if (rows->size() > limit) out += fmt::format(R"(,"next":"{}")", last);
  out += '}';
  return out;
}

Result<std::string> TopicsApi::partitions(std::string_view name) const {
  auto view = log_.view();
  auto topic = find(*view, name);
  if (!topic) return tl::unexpected(std::move(topic.error()));
  std::string out = R"({"partitions":[)";
  for (uint32_t i = 0; i < topic->partitions(); ++i) {
    bus::PartitionState state = view->partition({topic->id, i}).value_or(bus::PartitionState{});
    if (i > 0) out += ',';
    out += fmt::format(R"({{"partition":{},"logStartOffset":"{}","highWatermark":"{}","sizeBytes":"{}"}})", i,
                       state.log_start, state.high_watermark, state.bytes);
  }
  out += "]}";
  return out;
}

}  // namespace millrace::api
