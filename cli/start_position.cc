#include "cli/start_position.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <limits>

#include "http/params.h"

namespace millrace::cli {
namespace {

// Takes exactly `digits` digits off the front.
std::optional<int> take_digits(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  auto number = parse_number(text.substr(0, digits));
  if (!number) return std::nullopt;
  text.remove_prefix(digits);
  return static_cast<int>(*number);
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<int64_t> take_date(std::string_view& text) {
  auto year = take_digits(text, 4);
  if (!year || !take(text, "-")) return std::nullopt;
  auto month = take_digits(text, 2);
  if (!month || !take(text, "-")) return std::nullopt;
  auto day = take_digits(text, 2);
  if (!day) return std::nullopt;
  std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                   std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * 86'400'000ll;
}

std::optional<int64_t> take_clock(std::string_view& text) {
  auto hour = take_digits(text, 2);
  if (!hour || !take(text, ":")) return std::nullopt;
  auto minute = take_digits(text, 2);
  if (!minute || !take(text, ":")) return std::nullopt;
  auto second = take_digits(text, 2);
  // 60 is a leap second.
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  int64_t ms = (*hour * 3600ll + *minute * 60ll + *second) * 1000;
  if (!take(text, ".")) return ms;
  int64_t unit = 100;
  size_t digits = 0;
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), ++digits, unit /= 10)
    ms += (text[0] - '0') * unit;
  return digits > 0 ? std::optional(ms) : std::nullopt;
}

// Milliseconds that the zone is ahead of UTC.
std::optional<int64_t> take_zone(std::string_view& text) {
  if (take(text, "Zz")) return 0;
  bool behind = text.starts_with('-');
  if (!take(text, "+-")) return std::nullopt;
  auto hours = take_digits(text, 2);
  if (!hours || !take(text, ":")) return std::nullopt;
  auto minutes = take_digits(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  int64_t ahead = (*hours * 60ll + *minutes) * 60'000;
  return behind ? -ahead : ahead;
}

std::optional<StartPosition::Vector> parse_vector(std::string_view text) {
  StartPosition::Vector vector;
  for (;;) {
    size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    size_t colon = part.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    auto partition = parse_number(part.substr(0, colon)), offset = parse_number(part.substr(colon + 1));
    if (!partition || !offset || *partition > std::numeric_limits<uint32_t>::max()) return std::nullopt;
    if (!vector.emplace(static_cast<uint32_t>(*partition), *offset).second) return std::nullopt;
    if (comma == text.size()) return vector;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int64_t> parse_time(std::string_view text) {
  auto date = take_date(text);
  if (!date || text.empty()) return date;
  if (!take(text, "Tt ")) return std::nullopt;
  auto clock = take_clock(text);
  if (!clock) return std::nullopt;
  auto zone = take_zone(text);
  if (!zone || !text.empty()) return std::nullopt;
  return *date + *clock - *zone;
}

Result<StartPosition> StartPosition::parse(std::string_view text, int64_t now_ms) {
  constexpr auto kMaxOffset = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (text == "earliest") return StartPosition{Earliest()};
  if (text == "latest") return StartPosition{Latest()};
  if (auto offset = parse_number(text); offset && *offset <= kMaxOffset) return StartPosition{Offset{*offset}};
  if (auto time = parse_time(text)) return StartPosition{Time{*time}};
  if (auto vector = parse_vector(text)) return StartPosition{std::move(*vector)};
  if (auto ago = http::Param::duration("ago", "").check(text)) return StartPosition{Time{now_ms - *ago}};
  return fail(ErrorKind::kInvalidArgument, "INVALID_POSITION",
              fmt::format("'{}' is no position: write earliest, latest, an offset (42), offsets of partitions "
                          "(0:12,1:9), a time (2026-05-01T12:00:00Z) or an age (15m)",
                          text));
}

}  // namespace millrace::cli
