#include "config/value.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <span>

#include "base/utf8.h"

namespace millrace::config {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr std::array<Unit, 5> kSizeUnits = {
    {{"B", 1}, {"KB", 1ull << 10}, {"MB", 1ull << 20}, {"GB", 1ull << 30}, {"TB", 1ull << 40}}};
constexpr std::array<Unit, 5> kDurationUnits = {
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};

std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

/// Digits only; nullopt when the number does not fit.
std::optional<uint64_t> to_number(std::string_view digits) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

Parsed<uint64_t> parse_with_unit(std::string_view text, std::span<const Unit> units, std::string_view example) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0) return Wrong(fmt::format("{} is no number with a unit, such as {}", show(text), example));
  std::string_view unit_name = trim(text.substr(digits));
  if (unit_name.empty())
    return Wrong(
        fmt::format("{} has no unit; write one of {} behind it, as in {}", show(text), names_of(units), example));
  for (const Unit& unit : units) {
    if (unit.name != unit_name) continue;
    auto number = to_number(text.substr(0, digits));
    if (!number || *number > std::numeric_limits<int64_t>::max() / unit.factor)
      return Wrong(fmt::format("{} is too large", show(text)));
    return *number * unit.factor;
  }
  return Wrong(fmt::format("{} has the unknown unit {}; known are {}", show(text), show(unit_name), names_of(units)));
}

/// With the largest unit that leaves no remainder.
std::string format_with_unit(uint64_t value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (value != 0 && value % unit.factor == 0) best = &unit;
  return fmt::format("{}{}", value / best->factor, best->name);
}

}  // namespace

Parsed<bool> parse_bool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return Wrong(fmt::format("{} is neither true nor false", show(text)));
}

std::string format_bool(bool value) {
  return value ? "true" : "false";
}

Parsed<uint64_t> parse_integer(std::string_view text) {
  std::string digits;
  bool grouped = text.find('\'') != std::string_view::npos;
  size_t group = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    bool end = i == text.size() || text[i] == '\'';
    if (end) {
      // Without the rule, 1'00 could be meant as 100 or as 1000.
      bool first = digits.size() == group;
      if (group == 0 || (grouped && (group > 3 || (!first && group != 3))))
        return Wrong(fmt::format("{} is no whole number, such as 4'096 or 4096", show(text)));
      group = 0;
    } else if (text[i] >= '0' && text[i] <= '9') {
      digits += text[i];
      ++group;
    } else {
      return Wrong(fmt::format("{} is no whole number, such as 4'096 or 4096", show(text)));
    }
  }
  auto number = to_number(digits);
  if (!number) return Wrong(fmt::format("{} is too large", show(text)));
  return *number;
}

std::string format_integer(uint64_t value) {
  std::string text = std::to_string(value);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, "'");
  return text;
}

Parsed<uint64_t> parse_size(std::string_view text) {
  return parse_with_unit(text, kSizeUnits, "64KB");
}
std::string format_size(uint64_t bytes) {
  return format_with_unit(bytes, kSizeUnits);
}

Parsed<std::chrono::milliseconds> parse_duration(std::string_view text) {
  auto ms = parse_with_unit(text, kDurationUnits, "30s");
  if (!ms) return Wrong(std::move(ms.error()));
  return std::chrono::milliseconds(static_cast<int64_t>(*ms));
}
std::string format_duration(std::chrono::milliseconds value) {
  return format_with_unit(static_cast<uint64_t>(value.count()), kDurationUnits);
}

bool Endpoint::is_loopback() const {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

std::optional<uint16_t> parse_port(std::string_view text) {
  auto number = to_number(text);
  if (!number || *number > 65535) return std::nullopt;
  return static_cast<uint16_t>(*number);
}

Parsed<Endpoint> parse_endpoint(std::string_view text) {
  auto bad = [&] {
    return Wrong(fmt::format("{} is no address with a port, such as 127.0.0.1:8080 or [::1]:8080", show(text)));
  };
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string host(text.substr(0, colon));
  bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  auto port = parse_port(text.substr(colon + 1));
  if (!port) return bad();

  std::array<unsigned char, sizeof(in6_addr)> binary{};
  std::array<char, INET6_ADDRSTRLEN> canonical{};
  int family = bracketed ? AF_INET6 : AF_INET;
  if (::inet_pton(family, host.c_str(), binary.data()) != 1) return bad();
  ::inet_ntop(family, binary.data(), canonical.data(), canonical.size());
  return Endpoint{canonical.data(), *port};
}

std::string format_endpoint(const Endpoint& endpoint) {
  return fmt::format(fmt::runtime(endpoint.is_ipv6() ? "[{}]:{}" : "{}:{}"), endpoint.address, endpoint.port);
}

Parsed<std::vector<std::string_view>> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  if (text.empty()) return items;
  while (true) {
    size_t comma = text.find(',');
    std::string_view item = trim(text.substr(0, comma));
    if (item.empty()) return Wrong("the list has an empty item");
    items.push_back(item);
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string show(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string out = "'";
  std::string_view rest = text.substr(0, kShown);
  while (!rest.empty()) {
    unsigned char first = static_cast<unsigned char>(rest.front());
    size_t length = utf8_sequence(rest);
    if (length == 0 || first < 0x20 || first == 0x7f) {
      out += fmt::format("\\x{:02x}", first);
      length = 1;
    } else {
      out += rest.substr(0, length);
    }
    rest.remove_prefix(length);
  }
  return out + (text.size() > kShown ? "...'" : "'");
}

}  // namespace millrace::config
