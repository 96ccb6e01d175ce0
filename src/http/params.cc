#include "http/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace millrace::http {
namespace {

struct Unit {
  std::string_view name;
  int64_t factor;
};
constexpr std::array kDurations = {Unit{"ms", 1}, Unit{"s", 1000}, Unit{"m", 60'000}, Unit{"h", 3'600'000},
                                   Unit{"d", 86'400'000}};
constexpr std::array kSizes = {Unit{"B", 1}, Unit{"KB", int64_t{1} << 10}, Unit{"MB", int64_t{1} << 20},
                               Unit{"GB", int64_t{1} << 30}, Unit{"TB", int64_t{1} << 40}};

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <size_t N>
std::optional<int64_t> parse_with_unit(std::string_view text, const std::array<Unit, N>& units) {
  size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto count = parse_integer(text.substr(0, digits));
  auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == text.substr(digits); });
  int64_t value = 0;
  if (!count || unit == units.end() || __builtin_mul_overflow(*count, unit->factor, &value)) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_number(Param::Type type, std::string_view text) {
  switch (type) {
    case Param::Type::kInteger:
      return parse_integer(text);
    case Param::Type::kDuration:
      return parse_with_unit(text, kDurations);
    case Param::Type::kSize:
      return parse_with_unit(text, kSizes);
    case Param::Type::kBoolean:
      if (text == "true") return 1;
      if (text == "false") return 0;
      return std::nullopt;
    case Param::Type::kString:
      return static_cast<int64_t>(text.size());
  }
  return std::nullopt;
}

std::string_view wanted(Param::Type type) {
  switch (type) {
    case Param::Type::kInteger:
      return "a whole number, such as 100";
    case Param::Type::kDuration:
      return "a duration with its unit (ms, s, m, h, d), such as 30s";
    case Param::Type::kSize:
      return "a size with its unit (B, KB, MB, GB, TB), such as 4MB";
    case Param::Type::kBoolean:
      return "true or false";
    case Param::Type::kString:
      return "text";
  }
  return "text";
}

std::string with_unit(Param::Type type, int64_t value) {
  if (type == Param::Type::kDuration) return fmt::format("{}ms", value);
  if (type == Param::Type::kSize) return fmt::format("{}B", value);
  if (type == Param::Type::kString) return fmt::format("{} bytes", value);
  return fmt::format("{}", value);
}

// What a message quotes of a value.
std::string show(std::string_view text) {
  constexpr size_t kShown = 80;
  return text.size() <= kShown ? fmt::format("'{}'", text) : fmt::format("'{}...'", text.substr(0, kShown));
}

}  // namespace

Param::Param(std::string param_name, std::string param_description, Type param_type)
    : name(std::move(param_name)), description(std::move(param_description)), type(param_type) {}

Param Param::range(int64_t smallest, int64_t largest) && {
  MILLRACE_ASSERT(smallest <= largest, "a parameter's range is empty");
  low = smallest;
  high = largest;
  return std::move(*this);
}

Param Param::otherwise(std::string text) && {
  auto number = check(text);
  MILLRACE_ASSERT(number.has_value(), "a parameter's default is not valid for it");
  default_number = *number;
  default_text = std::move(text);
  return std::move(*this);
}

Param Param::one_of(std::vector<std::string> allowed) && {
  values = std::move(allowed);
  return std::move(*this);
}

Param Param::required() && {
  is_required = true;
  return std::move(*this);
}

Param Param::in_header() && {
  in = In::kHeader;
  return std::move(*this);
}

Result<int64_t> Param::check(std::string_view text) const {
  auto wrong = [&](std::string_view why) {
    return fail(ErrorKind::kInvalidArgument, "INVALID_PARAMETER",
                fmt::format("parameter '{}' is {}, but {}", name, show(text), why));
  };
  auto number = parse_number(type, text);
  if (!number) return wrong(fmt::format("must be {}", wanted(type)));
  if (*number < low || *number > high) {
    if (high == std::numeric_limits<int64_t>::max())
      return wrong(fmt::format("must be at least {}", with_unit(type, low)));
    return wrong(fmt::format("must be from {} to {}", with_unit(type, low), with_unit(type, high)));
  }
  if (!values.empty() && std::find(values.begin(), values.end(), text) == values.end())
    return wrong(fmt::format("must be one of {}", fmt::join(values, ", ")));
  return type == Type::kString ? 0 : *number;
}

Status Params::take(const Param& param, std::string text) {
  if (given(param.name) != nullptr)
    return fail(ErrorKind::kInvalidArgument, "DOUBLED_PARAMETER",
                fmt::format("parameter '{}' is given twice", param.name));
  auto parsed = param.check(text);
  if (!parsed) return tl::unexpected(std::move(parsed.error()));
  given_.push_back({&param, std::move(text), *parsed});
  return {};
}

const Param& Params::declared(std::string_view name) const {
  MILLRACE_ASSERT(declared_ != nullptr, "parameters are read from a request without a route");
  for (const Param& param : *declared_)
    if (param.name == name) return param;
  panic("a handler reads a parameter that its route does not declare", __FILE__, __LINE__);
}

const Params::Value* Params::given(std::string_view name) const {
  for (const Value& value : given_)
    if (value.param->name == name) return &value;
  return nullptr;
}

int64_t Params::number(std::string_view name, Param::Type type) const {
  const Param& param = declared(name);
  MILLRACE_ASSERT(param.type == type, "a parameter is read as another type than declared");
  if (const Value* value = given(name)) return value->number;
  MILLRACE_ASSERT(param.default_text.has_value(), "an absent parameter without default is read");
  return param.default_number;
}

bool Params::has(std::string_view name) const {
  return given(declared(name).name) != nullptr;
}

std::string_view Params::string(std::string_view name) const {
  const Param& param = declared(name);
  if (const Value* value = given(name)) return value->text;
  MILLRACE_ASSERT(param.default_text.has_value(), "an absent parameter without default is read");
  return *param.default_text;
}

int64_t Params::integer(std::string_view name) const {
  return number(name, Param::Type::kInteger);
}
bool Params::boolean(std::string_view name) const {
  return number(name, Param::Type::kBoolean) != 0;
}

std::chrono::milliseconds Params::duration(std::string_view name) const {
  return std::chrono::milliseconds(number(name, Param::Type::kDuration));
}

uint64_t Params::size(std::string_view name) const {
  return static_cast<uint64_t>(number(name, Param::Type::kSize));
}

std::optional<std::string_view> Params::find_string(std::string_view name) const {
  if (!has(name) && !declared(name).default_text) return std::nullopt;
  return string(name);
}

std::optional<int64_t> Params::find_integer(std::string_view name) const {
  if (!has(name) && !declared(name).default_text) return std::nullopt;
  return integer(name);
}

std::optional<std::chrono::milliseconds> Params::find_duration(std::string_view name) const {
  if (!has(name) && !declared(name).default_text) return std::nullopt;
  return duration(name);
}

}  // namespace millrace::http
