#include "cli/consume.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/consume_group.h"
#include "cli/follow.h"
#include "cli/json_text.h"
#include "cli/record_printer.h"

namespace millrace::cli {
namespace {

constexpr uint64_t kRecordsPerRequest = 1'000;
constexpr std::string_view kBytesPerRequest = "4MB";

tl::unexpected<Failure> unreadable(std::string_view what) {
  return fails(kExitUnreachable, fmt::format("the server's answer is unreadable: {}", what));
}

class Consumer {
 public:
  Consumer(const ConsumeCommand& command, Remote& remote, RecordPrinter& printer)
      : command_(command),
        remote_(remote),
        printer_(printer),
        target_("/v1/topics/" + http::percent_encode(command.topic)) {}

  Done run();

 private:
  Outcome<std::vector<Stretch>> stretches();
  Outcome<Stretch> stretch_of(std::string_view partition_row) const;
  Done place(std::vector<Stretch>& all);
  Outcome<uint64_t> offset_at(const Stretch& stretch, int64_t time_ms);
  Done check_start(const Stretch& stretch);
  Outcome<JsonMembers> read(const std::string& query, uint32_t partition, std::string& body);
  Done read_stretch(Stretch stretch);
  Done print_page(const JsonMembers& page, Stretch& stretch);
  bool wanted(const Stretch& stretch) const { return !command_.partition || stretch.partition == *command_.partition; }

  const ConsumeCommand& command_;
  Remote& remote_;
  RecordPrinter& printer_;
  const std::string target_;
};

Done Consumer::run() {
  auto all = stretches();
  if (!all) return tl::unexpected(std::move(all.error()));
  MILLRACE_CLI_TRY(place(*all));
  if (command_.follow) return follow(command_, *all, remote_, printer_);
  for (const Stretch& stretch : *all) {
    if (wanted(stretch)) MILLRACE_CLI_TRY(read_stretch(stretch));
    if (printer_.done()) break;
  }
  return printer_.flush();
}

// All partitions, each from its start to its high watermark.
Outcome<std::vector<Stretch>> Consumer::stretches() {
  auto answer = remote_.get(target_ + "/partitions");
  if (!answer) return tl::unexpected(std::move(answer.error()));
  auto members = is_json(answer->body) ? json_members(answer->body) : std::nullopt;
  auto rows = members ? json_elements(json_member(*members, "partitions")) : std::nullopt;
  if (!rows) return unreadable("no list of partitions");
  std::vector<Stretch> all;
  for (std::string_view row : *rows) {
    auto stretch = stretch_of(row);
    if (!stretch) return tl::unexpected(std::move(stretch.error()));
    all.push_back(*stretch);
  }
  std::sort(all.begin(), all.end(), [](const Stretch& a, const Stretch& b) { return a.partition < b.partition; });
  if (command_.partition && std::none_of(all.begin(), all.end(), [&](const Stretch& s) { return wanted(s); }))
    return fails(kExitUsage, fmt::format("topic '{}' has {} partitions, from 0 on; there is no partition {}",
                                         command_.topic, all.size(), *command_.partition));
  return all;
}

Outcome<Stretch> Consumer::stretch_of(std::string_view partition_row) const {
  auto row = json_members(partition_row).value_or(JsonMembers());
  auto number = [&row](std::string_view name) { return parse_number(json_scalar(json_member(row, name))); };
  auto partition = number("partition"), start = number("logStartOffset"), end = number("highWatermark");
  if (!partition || !start || !end) return unreadable("a partition without its offsets");
  return Stretch{static_cast<uint32_t>(*partition), *start, *end};
}

// Moves the starts to where --from wants them. Partitions that are not wanted start at their ends.
Done Consumer::place(std::vector<Stretch>& all) {
  const auto& from = command_.from.value;
  if (std::holds_alternative<StartPosition::Offset>(from) && !command_.partition && all.size() > 1)
    return fails(kExitUsage, fmt::format("topic '{}' has {} partitions: name one with --partition, or write --from "
                                         "0:OFFSET,1:OFFSET,...",
                                         command_.topic, all.size()));
  if (const auto* vector = std::get_if<StartPosition::Vector>(&from))
    for (const auto& [partition, offset] : *vector)
      if (std::none_of(all.begin(), all.end(), [p = partition](const Stretch& s) { return s.partition == p; }))
        return fails(kExitUsage, fmt::format("topic '{}' has no partition {}", command_.topic, partition));
  for (Stretch& stretch : all) {
    if (!wanted(stretch) || std::holds_alternative<StartPosition::Latest>(from)) {
      stretch.next = stretch.end;
    } else if (const auto* at = std::get_if<StartPosition::Offset>(&from)) {
      stretch.next = at->offset;
    } else if (const auto* time = std::get_if<StartPosition::Time>(&from)) {
      auto offset = offset_at(stretch, time->ms);
      if (!offset) return tl::unexpected(std::move(offset.error()));
      stretch.next = *offset;
    } else if (const auto* vector = std::get_if<StartPosition::Vector>(&from)) {
      if (auto found = vector->find(stretch.partition); found != vector->end()) stretch.next = found->second;
    }
    MILLRACE_CLI_TRY(check_start(stretch));
  }
  return {};
}

Outcome<uint64_t> Consumer::offset_at(const Stretch& stretch, int64_t time_ms) {
  std::string body;
  auto page = read(fmt::format("timestamp={}&limit=1", std::max<int64_t>(time_ms, 0)), stretch.partition, body);
  if (!page) return tl::unexpected(std::move(page.error()));
  auto records = json_elements(json_member(*page, "records")).value_or(std::vector<std::string_view>());
  auto source = records.empty() ? *page : json_members(records[0]).value_or(JsonMembers());
  auto offset = parse_number(json_scalar(json_member(source, records.empty() ? "nextOffset" : "offset")));
  if (!offset) return unreadable("no offset for a time");
  return *offset;
}

// Of an offset behind the end nothing would be asked, and the node could not say that it does not exist.
Done Consumer::check_start(const Stretch& stretch) {
  if (stretch.next <= stretch.end) return {};
  std::string body;
  auto page = read(fmt::format("offset={}&limit=1", stretch.next), stretch.partition, body);
  return page ? Done() : tl::unexpected(std::move(page.error()));
}

// One page; the members are views into `body`.
Outcome<JsonMembers> Consumer::read(const std::string& query, uint32_t partition, std::string& body) {
  auto answer = remote_.persist("GET", fmt::format("{}/partitions/{}/records?{}", target_, partition, query), {}, {},
                                command_.retry);
  if (!answer) return tl::unexpected(std::move(answer.error()));
  body = std::move(answer->body);
  auto page = is_json(body) ? json_members(body) : std::nullopt;
  if (!page) return unreadable("no object");
  return std::move(*page);
}

Done Consumer::read_stretch(Stretch stretch) {
  std::string body;
  while (stretch.next < stretch.end && !printer_.done()) {
    if (remote_.interrupts().raised()) return fails(kExitInterrupted);
    uint64_t limit = std::min(kRecordsPerRequest, printer_.left());
    auto page = read(fmt::format("offset={}&limit={}&maxBytes={}", stretch.next, limit, kBytesPerRequest),
                     stretch.partition, body);
    if (!page) return tl::unexpected(std::move(page.error()));
    MILLRACE_CLI_TRY(print_page(*page, stretch));
  }
  return {};
}

Done Consumer::print_page(const JsonMembers& page, Stretch& stretch) {
  auto records = json_elements(json_member(page, "records"));
  auto next = parse_number(json_scalar(json_member(page, "nextOffset")));
  if (!records || !next) return unreadable("no records or no nextOffset");
  for (std::string_view record : *records) {
    auto offset = parse_number(json_scalar(json_member(json_members(record).value_or(JsonMembers()), "offset")));
    if (!offset) return unreadable("a record without an offset");
    if (*offset >= stretch.end || printer_.done()) break;
    MILLRACE_CLI_TRY(printer_.print(record));
  }
  if (*next <= stretch.next)
    return unreadable(fmt::format("partition {} does not go on behind offset {}", stretch.partition, stretch.next));
  stretch.next = *next;
  return {};
}

}  // namespace

std::string vector_of(const std::vector<Stretch>& stretches) {
  std::string text;
  for (const Stretch& stretch : stretches) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}:{}", stretch.partition, stretch.next);
  }
  return text;
}

Done consume(const ConsumeCommand& command, bool json, Remote& remote, Console& console) {
  auto printer = RecordPrinter::create(command, json, console);
  if (!printer) return tl::unexpected(std::move(printer.error()));
  Done outcome =
      command.group ? consume_group(command, remote, *printer, console) : Consumer(command, remote, *printer).run();
  // What was read before a failure is good.
  Done written = printer->flush();
  return outcome ? written : outcome;
}

}  // namespace millrace::cli
