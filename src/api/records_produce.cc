#include <fmt/format.h>

#include <map>

#include "api/record_json.h"
#include "api/records.h"
#include "bus/partitioner.h"
#include "bus/record_batch.h"
#include "crypto/hash.h"

namespace millrace::api {
namespace {

/// The pieces of one record that a RecordView points to.
struct ParsedRecord {
  std::optional<Bytes> key, value;
  std::vector<std::pair<std::string, std::optional<Bytes>>> headers;
  std::optional<uint32_t> partition;
  int64_t timestamp_ms = 0;

  bus::RecordView view() const {
    bus::RecordView view;
    view.timestamp_ms = timestamp_ms;
    if (key) view.key = *key;
    if (value) view.value = *value;
    for (const auto& [name, content] : headers)
      view.headers.push_back({name, content ? std::optional<ByteView>(*content) : std::nullopt});
    return view;
  }
};

Status parse_headers(const Json& json, const std::string& pointer, ParsedRecord& record) {
  if (!json.is_array())
    return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD", "headers must be an array of {name, value}", pointer);
  for (size_t i = 0; i < json.size(); ++i) {
    std::string here = fmt::format("{}/{}", pointer, i);
    auto fields = Fields::of(json[i], here, {"name", "value"});
    if (!fields) return tl::unexpected(std::move(fields.error()));
    auto name = fields->string("name");
    if (!name) return tl::unexpected(std::move(name.error()));
    std::optional<Bytes> value;
    if (const Json* content = fields->find("value")) {
      auto bytes = to_bytes(*content, here + "/value");
      if (!bytes) return tl::unexpected(std::move(bytes.error()));
      value = *std::move(bytes);
    }
    record.headers.emplace_back(*std::move(name), std::move(value));
  }
  return {};
}

Result<ParsedRecord> parse_record(const Json& json, const std::string& pointer, const bus::Topic& topic,
                                  int64_t now_ms) {
  auto fields = Fields::of(json, pointer, {"key", "value", "headers", "partition", "timestamp"});
  if (!fields) return tl::unexpected(std::move(fields.error()));
  ParsedRecord record;
  record.timestamp_ms = now_ms;
  for (auto [name, target] : {std::pair{"key", &record.key}, {"value", &record.value}}) {
    const Json* content = fields->find(name);
    if (content == nullptr) continue;
    auto bytes = to_bytes(*content, fields->pointer(name));
    if (!bytes) return tl::unexpected(std::move(bytes.error()));
    *target = *std::move(bytes);
  }
  if (const Json* headers = fields->find("headers"))
    MILLRACE_TRY(parse_headers(*headers, fields->pointer("headers"), record));
  if (const Json* partition = fields->find("partition")) {
    auto number = to_integer(*partition, fields->pointer("partition"), 0, UINT32_MAX);
    if (!number) return tl::unexpected(std::move(number.error()));
    if (*number >= topic.partitions())
      return fail(
          ErrorKind::kNotFound, "UNKNOWN_PARTITION",
          fmt::format("topic '{}' has no partition {}, only 0 to {}", topic.name, *number, topic.partitions() - 1),
          fields->pointer("partition"));
    record.partition = static_cast<uint32_t>(*number);
  }
  if (const Json* timestamp = fields->find("timestamp")) {
    auto ms = to_timestamp(*timestamp, fields->pointer("timestamp"));
    if (!ms) return tl::unexpected(std::move(ms.error()));
    record.timestamp_ms = *ms;
  }
  return record;
}

/// The answer: the k-th record of a partition has the k-th offset that its appends were given.
std::string offsets_json(const std::vector<uint32_t>& placement, const bus::CommitReceipt& receipt) {
  struct Cursor {
    size_t append = 0;
    uint32_t taken = 0;
  };
  std::map<uint32_t, std::vector<const bus::CommitReceipt::Appended*>> by_partition;
  for (const auto& appended : receipt.appends) by_partition[appended.to.partition].push_back(&appended);
  std::map<uint32_t, Cursor> cursors;
  std::string out = R"({"offsets":[)";
  for (size_t i = 0; i < placement.size(); ++i) {
    Cursor& cursor = cursors[placement[i]];
    const auto& appends = by_partition[placement[i]];
    while (cursor.append < appends.size() && cursor.taken == appends[cursor.append]->records)
      ++cursor.append, cursor.taken = 0;
    MILLRACE_ASSERT(cursor.append < appends.size(), "a receipt with fewer records than were sent");
    uint64_t offset = appends[cursor.append]->base_offset + cursor.taken++;
    if (i > 0) out += ',';
    out += R"({"partition":)";
    out += std::to_string(placement[i]);
    out += R"(,"offset":)";
    append_integer_string(out, offset);
    out += '}';
  }
  out += "]}";
  return out;
}

}  // namespace

struct RecordsApi::Plan {
  Uuid topic;
  std::vector<uint32_t> placement;  ///< partition of each record
  std::vector<bus::Append> appends;
};

Result<RecordsApi::Plan> RecordsApi::plan(std::string_view topic_name, std::string_view body, bool idempotent) {
  auto topic = topics_.find(*log_.view(), topic_name);
  if (!topic) return tl::unexpected(std::move(topic.error()));
  auto json = parse_json(body);
  if (!json) return tl::unexpected(std::move(json.error()));
  auto fields = Fields::of(*json, "", {"records"});
  if (!fields) return tl::unexpected(std::move(fields.error()));
  const Json* records = fields->find("records");
  if (records == nullptr || !records->is_array() || records->empty() || records->size() > kMaxRecordsPerRequest)
    return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD",
                fmt::format("'records' must be an array of 1 to {} records", kMaxRecordsPerRequest), "/records");

  // A repeated request must place its records as the first one did, so then the request itself decides.
  const uint32_t keyless = (idempotent ? static_cast<uint32_t>(bus::murmur2(body) & 0x7fffffff)
                                       : next_keyless_.fetch_add(1, std::memory_order_relaxed)) %
                           topic->partitions();
  Plan plan;
  plan.topic = topic->id;
  std::map<uint32_t, bus::BatchBuilder> builders;
  const auto max_batch = static_cast<size_t>(topic->settings.max_message_bytes);
  const int64_t now_ms = clock_.wall_ms();
  for (size_t i = 0; i < records->size(); ++i) {
    std::string pointer = fmt::format("/records/{}", i);
    auto record = parse_record((*records)[i], pointer, *topic, now_ms);
    if (!record) return tl::unexpected(std::move(record.error()));
    uint32_t partition = record->partition ? *record->partition
                         : record->key     ? bus::partition_of_key(*record->key, topic->partitions())
                                           : keyless;
    bus::RecordView view = record->view();
    const size_t bytes = bus::record_bytes_bound(view);
    if (bus::kBatchHeaderBytes + bytes > max_batch)
      return fail(ErrorKind::kInvalidArgument, "MESSAGE_TOO_LARGE",
                  fmt::format("the record takes {} bytes; topic '{}' has max.message.bytes {}",
                              bus::kBatchHeaderBytes + bytes, topic->name, max_batch),
                  pointer);
    if (topic->settings.cleanup_compact && !record->key)
      return fail(ErrorKind::kInvalidArgument, "INVALID_RECORD",
                  fmt::format("topic '{}' is compacted: a record needs a key", topic->name), pointer + "/key");
    bus::BatchBuilder& builder = builders[partition];
    if (!builder.empty() && builder.bytes() + bytes > max_batch)
      plan.appends.push_back({{topic->id, partition}, builder.finish()});
    builder.add(view);
    plan.placement.push_back(partition);
  }
  for (auto& [partition, builder] : builders) plan.appends.push_back({{topic->id, partition}, builder.finish()});
  return plan;
}

void RecordsApi::produce(std::string_view topic, std::string_view body, std::optional<std::string> idempotency_key,
                         std::function<void(Result<Produced>)> reply) {
  auto planned = plan(topic, body, idempotency_key.has_value());
  if (!planned) return reply(tl::unexpected(std::move(planned.error())));
  bus::Commit commit(bus::topic_home(topic));
  commit.appends = std::move(planned->appends);
  if (idempotency_key)
    commit.idempotency = bus::IdempotencyKey{
        crypto::digest_of({"POST /v1/topics/{topic}/records", planned->topic.view(), *idempotency_key}),
        crypto::digest_of({body}),
        {}};
  commit.done = [reply = std::move(reply), placement = std::move(planned->placement)](bus::CommitResult result) {
    if (!result) return reply(tl::unexpected(std::move(result.error())));
    reply(Produced{offsets_json(placement, *result), result->replayed});
  };
  log_.submit(std::move(commit));
}

}  // namespace millrace::api
