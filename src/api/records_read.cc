#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/batch_records.h"
#include "api/record_json.h"
#include "api/records.h"
#include "bus/record_batch.h"

namespace millrace::api {
namespace {

tl::unexpected<Error> unknown_partition(const bus::Topic& topic, uint64_t partition) {
  return fail(
      ErrorKind::kNotFound, "UNKNOWN_PARTITION",
      fmt::format("topic '{}' has no partition {}, only 0 to {}", topic.name, partition, topic.partitions() - 1));
}

}  // namespace

Result<ReadAnswer> RecordsApi::read(const ReadRequest& request) const {
  auto view = log_.view();
  auto topic = topics_.find(*view, request.topic);
  if (!topic) return tl::unexpected(std::move(topic.error()));
  if (request.partition >= topic->partitions()) return unknown_partition(*topic, request.partition);
  const bus::TopicPartition at{topic->id, request.partition};
  const bus::PartitionState state = view->partition(at).value_or(bus::PartitionState{});
  uint64_t offset = state.log_start;
  if (request.offset) {
    offset = static_cast<uint64_t>(*request.offset);
  } else if (request.timestamp_ms) {
    auto found = view->offset_for_time(at, *request.timestamp_ms);
    if (!found) return tl::unexpected(std::move(found.error()));
    offset = *found;
  }
  if (offset < state.log_start || offset > state.high_watermark)
    return fail(ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE",
                fmt::format("offset {} of topic '{}', partition {} is outside [{}, {}]", offset, topic->name,
                            request.partition, state.log_start, state.high_watermark));
  auto batches = view->fetch(at, offset, request.max_bytes);
  if (!batches) return tl::unexpected(std::move(batches.error()));

  ReadAnswer answer;
  answer.json = R"({"records":[)";
  size_t count = 0;
  for (const Bytes& batch : *batches) {
    auto next = walk_batch(batch, offset, topic->name, request.partition, [&](const bus::RecordView& record) {
      if (count == request.limit) return false;
      if (count++ > 0) answer.json += ',';
      append_record(answer.json, request.partition, record);
      return true;
    });
    if (!next) return tl::unexpected(std::move(next.error()));
    offset = *next;
    if (count == request.limit) break;
  }
  answer.json += fmt::format(R"(],"nextOffset":"{}","highWatermark":"{}","logStartOffset":"{}"}})", offset,
                             state.high_watermark, state.log_start);
  answer.empty = count == 0 && offset == state.high_watermark;
  answer.at = {at, offset};
  return answer;
}

std::string format_positions(const Positions& positions) {
  std::string out;
  for (const auto& [partition, offset] : positions) {
    if (!out.empty()) out += ',';
    out += std::to_string(partition);
    out += ':';
    out += std::to_string(offset);
  }
  return out;
}

Result<Positions> parse_positions(std::string_view text) {
  auto invalid = [&] {
    return fail(ErrorKind::kInvalidArgument, "INVALID_POSITION",
                fmt::format("'{}' is no position; right are earliest, latest, or like 0:12,1:9", text.substr(0, 200)));
  };
  Positions positions;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    uint32_t partition = 0;
    uint64_t offset = 0;
    auto [colon, bad] = std::from_chars(part.data(), part.data() + part.size(), partition);
    if (bad != std::errc() || colon == part.data() + part.size() || *colon != ':') return invalid();
    auto [rest, worse] = std::from_chars(colon + 1, part.data() + part.size(), offset);
    if (worse != std::errc() || rest != part.data() + part.size()) return invalid();
    if (!positions.empty() && positions.back().first >= partition) return invalid();
    positions.emplace_back(partition, offset);
  }
  return positions;
}

Result<Positions> RecordsApi::start_positions(std::string_view topic_name, std::string_view from) const {
  auto view = log_.view();
  auto topic = topics_.find(*view, topic_name);
  if (!topic) return tl::unexpected(std::move(topic.error()));
  const bool latest = from == "latest";
  Positions positions;
  for (uint32_t i = 0; i < topic->partitions(); ++i) {
    bus::PartitionState state = view->partition({topic->id, i}).value_or(bus::PartitionState{});
    positions.emplace_back(i, latest ? state.high_watermark : state.log_start);
  }
  if (latest || from == "earliest") return positions;
  auto given = parse_positions(from);
  if (!given) return given;
  for (const auto& [partition, offset] : *given) {
    if (partition >= topic->partitions()) return unknown_partition(*topic, partition);
    positions[partition].second = offset;
  }
  return positions;
}

Result<bool> RecordsApi::stream(const bus::Topic& topic, Positions& positions, size_t max_bytes,
                                const Emit& emit) const {
  auto view = log_.view();
  bool all_read = true;
  std::string json;
  for (auto& position : positions) {
    const uint32_t partition = position.first;
    uint64_t& offset = position.second;
    const bus::TopicPartition at{topic.id, partition};
    auto state = view->partition(at);
    if (!state) return fail(ErrorKind::kNotFound, "UNKNOWN_TOPIC", fmt::format("topic '{}' was deleted", topic.name));
    // Retention may have passed a slow reader: it goes on with what is left.
    offset = std::max(offset, state->log_start);
    auto batches = view->fetch(at, offset, max_bytes);
    if (!batches) return tl::unexpected(std::move(batches.error()));
    bool full = false;
    for (const Bytes& batch : *batches) {
      auto next = walk_batch(batch, offset, topic.name, partition, [&](const bus::RecordView& record) {
        json.clear();
        append_record(json, partition, record);
        const uint64_t before = offset;
        offset = static_cast<uint64_t>(record.offset) + 1;
        full = !emit(json, format_positions(positions));
        if (full) offset = before;
        return !full;
      });
      if (!next) return tl::unexpected(std::move(next.error()));
      if (full) return false;
      offset = *next;
    }
    all_read = all_read && offset == state->high_watermark;
  }
  return all_read;
}

}  // namespace millrace::api
