#include "api/json.h"

#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <unordered_set>
#include <vector>

namespace millrace::api {
namespace {

tl::unexpected<Error> invalid(std::string message, std::string pointer) {
  return fail(ErrorKind::kInvalidArgument, "INVALID_FIELD", std::move(message), std::move(pointer));
}

/// Takes the parser's events, holds the bounds, and builds the value when one is wanted.
class StrictHandler final : public nlohmann::json_sax<Json> {
 public:
  explicit StrictHandler(Json* root) : root_(root) {}

  bool null() override { return take(nullptr); }
  bool boolean(bool value) override { return take(value); }
  bool number_integer(number_integer_t value) override { return take(value); }
  bool number_unsigned(number_unsigned_t value) override { return take(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") == string_t::npos) return refuse("an integer does not fit into 64 bits: " + text);
    return take(value);
  }
  bool string(string_t& value) override { return take(std::move(value)); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!levels_.back().names.insert(name).second) return refuse("the key \"" + name.substr(0, 100) + "\" is doubled");
    levels_.back().name = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    if (problem_.empty()) {
      std::string_view text = error.what();
      // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without its bracket.
      if (auto bracket = text.find("] "); bracket != std::string_view::npos) text.remove_prefix(bracket + 2);
      problem_ = fmt::format("{} (byte {})", text.substr(0, 300), position);
    }
    return false;
  }
  const std::string& problem() const { return problem_; }

 private:
  struct Level {
    Json* container;
    string_t name;
    std::unordered_set<string_t> names;
  };

  bool refuse(std::string what) {
    problem_ = std::move(what);
    return false;
  }
  template <typename Value>
  Json* place(Value&& value) {
    if (root_ == nullptr) return nullptr;
    if (levels_.empty()) {
      *root_ = std::forward<Value>(value);
      return root_;
    }
    Level& level = levels_.back();
    if (level.container->is_array()) return &level.container->emplace_back(std::forward<Value>(value));
    // push_back of ordered_json's underlying vector: the key is known to be new.
    auto& members = level.container->template get_ref<Json::object_t&>();
    return &static_cast<std::vector<std::pair<const string_t, Json>>&>(members)
                .emplace_back(std::move(level.name), std::forward<Value>(value))
                .second;
  }
  bool count() {
    return ++values_ <= kMaxJsonValues || refuse(fmt::format("there are more than {} values", kMaxJsonValues));
  }
  template <typename Value>
  bool take(Value&& value) {
    if (!count()) return false;
    place(std::forward<Value>(value));
    return true;
  }
  bool open(Json container) {
    if (levels_.size() >= kMaxJsonDepth) return refuse(fmt::format("it is nested deeper than {}", kMaxJsonDepth));
    if (!count()) return false;
    Json* placed = place(std::move(container));
    levels_.push_back({placed, {}, {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  Json* root_;
  std::vector<Level> levels_;
  size_t values_ = 0;
  std::string problem_;
};

}  // namespace

Result<Json> parse_json(std::string_view text) {
  Json value;
  StrictHandler handler(&value);
  if (Json::sax_parse(text, &handler)) return value;
  return fail(ErrorKind::kInvalidArgument, "INVALID_JSON", "the body is not acceptable JSON: " + handler.problem());
}

bool is_json(std::string_view text) {
  StrictHandler handler(nullptr);
  return Json::sax_parse(text, &handler);
}

Result<Fields> Fields::of(const Json& object, std::string pointer, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return invalid("an object is expected here", std::move(pointer));
  for (const auto& [name, value] : object.items())
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail(ErrorKind::kInvalidArgument, "UNKNOWN_FIELD",
                  fmt::format("there is no field '{}' here; known: {}", name.substr(0, 100), fmt::join(known, ", ")),
                  pointer + "/" + name.substr(0, 100));
  return Fields(object, std::move(pointer));
}

const Json* Fields::find(std::string_view name) const {
  auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

Result<std::string> Fields::string(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr)
    return fail(ErrorKind::kInvalidArgument, "MISSING_FIELD", fmt::format("the field '{}' is missing", name),
                pointer(name));
  if (!value->is_string()) return invalid(fmt::format("'{}' must be a string", name), pointer(name));
  return value->get<std::string>();
}

Result<int64_t> to_integer(const Json& value, const std::string& pointer, int64_t low, int64_t high) {
  std::optional<int64_t> number;
  if (value.is_number_unsigned()) {
    if (auto wide = value.get<uint64_t>(); wide <= static_cast<uint64_t>(INT64_MAX))
      number = static_cast<int64_t>(wide);
  } else if (value.is_number_integer()) {
    number = value.get<int64_t>();
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    int64_t parsed = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (error == std::errc() && end == text.data() + text.size()) number = parsed;
  }
  if (!number || *number < low || *number > high)
    return invalid(fmt::format("{} is not an integer from {} to {}",
                               value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100), low, high),
                   pointer);
  return *number;
}

Result<int64_t> to_timestamp(const Json& value, const std::string& pointer) {
  if (value.is_string())
    if (auto time = parse_time(value.get_ref<const std::string&>())) return *time;
  auto number = to_integer(value, pointer, 0, INT64_MAX);
  if (!number) return invalid("a time must be milliseconds since 1970 or as RFC 3339 has it", pointer);
  return number;
}

void append_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
    }
  }
  out.append(text, plain);
  out += '"';
}

std::optional<std::string> format_time(int64_t unix_ms) {
  constexpr int64_t kFirst = -62'135'596'800'000, kLast = 253'402'300'799'999;
  if (unix_ms < kFirst || unix_ms > kLast) return std::nullopt;
  int64_t ms = ((unix_ms % 1000) + 1000) % 1000;
  auto seconds = static_cast<time_t>((unix_ms - ms) / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, ms);
}

std::optional<int64_t> parse_time(std::string_view text) {
  // date "T" time [fraction] ("Z" | offset), RFC 3339 section 5.6
  auto digits = [&](size_t at, size_t n) -> int {
    int value = 0;
    for (size_t i = at; i < at + n; ++i) {
      if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') || text[13] != ':' ||
      text[16] != ':')
    return std::nullopt;
  tm utc{};
  int year = digits(0, 4), month = digits(5, 2), day = digits(8, 2);
  int hour = digits(11, 2), minute = digits(14, 2), second = digits(17, 2);
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 ||
      minute > 59 || second < 0 || second > 60)
    return std::nullopt;
  utc.tm_year = year - 1900, utc.tm_mon = month - 1, utc.tm_mday = day;
  utc.tm_hour = hour, utc.tm_min = minute, utc.tm_sec = second;
  size_t at = 19;
  int64_t ms = 0;
  if (text[at] == '.') {
    size_t first = ++at;
    for (int64_t unit = 100; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
      ms += (text[at] - '0') * unit;
    if (at == first) return std::nullopt;
  }
  std::string_view zone = text.substr(at);
  int64_t offset_minutes = 0;
  if (zone != "Z" && zone != "z") {
    int zone_hour = digits(at + 1, 2), zone_minute = digits(at + 4, 2);
    if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':' || zone_hour < 0 || zone_hour > 23 ||
        zone_minute < 0 || zone_minute > 59)
      return std::nullopt;
    offset_minutes = (zone[0] == '-' ? -1 : 1) * (zone_hour * 60 + zone_minute);
  }
  const int wanted_day = utc.tm_mday;
  int64_t seconds = timegm(&utc);
  if (second < 60 && utc.tm_mday != wanted_day) return std::nullopt;  // February 30
  return (seconds - offset_minutes * 60) * 1000 + ms;
}

}  // namespace millrace::api
