#include "worker/parking.h"

#include <spdlog/fmt/fmt.h>

#include "proto/worker.pb.h"

namespace millrace::worker {
namespace {

using store::Table;

constexpr std::string_view kRows = "parked/";
constexpr size_t kRowsPerRead = 256;

tl::unexpected<Error> invalid_row(ByteView key) {
  return fail(ErrorKind::kCorruption, "INVALID_PARKED_ROW", fmt::format("row {} cannot be read", to_hex(key)));
}

}  // namespace

std::string Parking::queue_of(const Parked& parked) {
  return parked.key ? queue_of(*parked.key) : "n" + std::to_string(parked.number);
}

Bytes Parking::key_of(uint64_t number) const {
  Bytes key = home_.key(kRows);
  append_be(key, number);
  return key;
}

Result<Parked> Parking::parse(uint64_t number, const proto::ParkedRow& row) {
  Parked parked{number, std::nullopt, row.attempts(), row.due_ms(), row.record().size(), std::nullopt};
  if (row.topic().empty()) {
    parked.timer = {row.timer_due_ms(), row.timer_id()};
    return parked;
  }
  auto fetched = read_single(row.record());
  if (!fetched) return tl::unexpected(std::move(fetched.error()));
  if (fetched->records.front().key) parked.key = Bytes(*fetched->records.front().key);
  return parked;
}

Status Parking::load(const bus::View& view) {
  const Bytes prefix = home_.key(kRows);
  Bytes after;
  for (;;) {
    auto rows = view.list(Table::kMeta, prefix, after, kRowsPerRead);
    if (!rows) return tl::unexpected(std::move(rows.error()));
    for (const auto& [key, row] : *rows) {
      proto::ParkedRow parsed;
      if (key.size() != prefix.size() + sizeof(uint64_t) || !parsed.ParseFromString(row.value)) return invalid_row(key);
      auto parked = parse(load_be<uint64_t>(key.data() + prefix.size()), parsed);
      if (!parked) return invalid_row(key);
      put(*std::move(parked));
    }
    if (rows->size() < kRowsPerRead) return {};
    after = rows->back().first;
  }
}

Result<proto::ParkedRow> Parking::read(const bus::View& view, uint64_t number) const {
  auto row = view.get(Table::kMeta, key_of(number));
  if (!row) return tl::unexpected(std::move(row.error()));
  proto::ParkedRow parsed;
  if (!*row || !parsed.ParseFromString((*row)->value)) return invalid_row(key_of(number));
  return parsed;
}

std::optional<int64_t> Parking::next_due() const {
  return due_.empty() ? std::nullopt : std::optional(due_.begin()->first);
}

const Parked* Parking::due(int64_t now_ms) const {
  if (due_.empty() || due_.begin()->first > now_ms) return nullptr;
  return &entries_.at(due_.begin()->second);
}

std::optional<uint64_t> Parking::find_timer(int64_t due_ms, const Bytes& id) const {
  for (const auto& [number, parked] : entries_)
    if (parked.timer && parked.timer->first == due_ms && parked.timer->second == id) return number;
  return std::nullopt;
}

void Parking::put(Parked parked) {
  erase(parked.number);
  next_number_ = std::max(next_number_, parked.number + 1);
  bytes_ += parked.bytes;
  auto& queue = queues_[queue_of(parked)];
  if (!queue.empty() && parked.number < *queue.begin()) {
    const Parked& first = entries_.at(*queue.begin());
    due_.erase({first.due_ms, first.number});
  }
  queue.insert(parked.number);
  if (*queue.begin() == parked.number) due_.insert({parked.due_ms, parked.number});
  entries_[parked.number] = std::move(parked);
}

void Parking::erase(uint64_t number) {
  auto found = entries_.find(number);
  if (found == entries_.end()) return;
  const Parked& parked = found->second;
  auto queue = queues_.find(queue_of(parked));
  const bool was_first = *queue->second.begin() == number;
  queue->second.erase(number);
  if (was_first) due_.erase({parked.due_ms, number});
  if (queue->second.empty()) {
    queues_.erase(queue);
  } else if (was_first) {
    const Parked& first = entries_.at(*queue->second.begin());
    due_.insert({first.due_ms, first.number});
  }
  bytes_ -= parked.bytes;
  entries_.erase(found);
}

Bytes dead_letter(const proto::ParkedRow& row, const bus::RecordView& record, bool with_value) {
  const bool is_timer = row.topic().empty();
  const std::vector<std::pair<std::string_view, std::string>> said = {
      {"millrace.error.code", row.error_code()},
      {"millrace.error.message", row.error_message()},
      {"millrace.source.topic", row.topic()},
      {"millrace.source.partition", std::to_string(row.partition())},
      {is_timer ? "millrace.source.timer" : "millrace.source.offset",
       is_timer ? row.timer_id() : std::to_string(row.offset())},
      {"millrace.attempts", std::to_string(row.attempts())},
      {"millrace.first.failure.ms", std::to_string(row.first_failure_ms())},
      {"millrace.value.omitted", std::to_string(record.value ? record.value->size() : 0)},
  };
  std::vector<bus::RecordView::Header> headers;
  for (const auto& [name, value] : said)
    if (!with_value || name != "millrace.value.omitted") headers.push_back({name, value});
  return single_batch(record, headers, with_value);
}

}  // namespace millrace::worker
