#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

/// The API's JSON: read strictly, written straight into a string.
namespace millrace::api {

/// Keeps the order of members, so that a value a client sent is stored as it was meant.
using Json = nlohmann::ordered_json;

/// Deeper nesting is refused.
inline constexpr size_t kMaxJsonDepth = 64;
/// More values in one text are refused: each costs far more memory than the two bytes it may take in the text.
inline constexpr size_t kMaxJsonValues = 1'000'000;

/// Parses RFC 8259 JSON, and refuses what other parsers would read otherwise: doubled keys, integers beyond 64 bits,
/// numbers beyond a double, lone surrogates, broken UTF-8, anything behind the value. Errors: kInvalidArgument
/// INVALID_JSON saying what and where.
Result<Json> parse_json(std::string_view text);

/// Whether parse_json would take it, without building it.
bool is_json(std::string_view text);

/// Members of a request object, by name, with the pointer of the object for errors.
class Fields {
 public:
  /// Errors: kInvalidArgument INVALID_FIELD when `object` is none, UNKNOWN_FIELD naming a member that is not `known`.
  static Result<Fields> of(const Json& object, std::string pointer, std::initializer_list<std::string_view> known);

  /// Null when absent, or JSON null.
  const Json* find(std::string_view name) const;
  bool has(std::string_view name) const { return object_->contains(name); }
  std::string pointer(std::string_view name) const { return pointer_ + "/" + std::string(name); }

  /// Errors: kInvalidArgument MISSING_FIELD, INVALID_FIELD.
  Result<std::string> string(std::string_view name) const;

 private:
  Fields(const Json& object, std::string pointer) : object_(&object), pointer_(std::move(pointer)) {}
  const Json* object_;
  std::string pointer_;
};

/// A 64-bit integer, as a JSON integer or a string of one, in [low, high]. Errors: kInvalidArgument INVALID_FIELD.
Result<int64_t> to_integer(const Json& value, const std::string& pointer, int64_t low, int64_t high);

/// A point in time as milliseconds since 1970: a number of them, or RFC 3339. Errors: kInvalidArgument INVALID_FIELD.
Result<int64_t> to_timestamp(const Json& value, const std::string& pointer);

/// Appends `text`, which is UTF-8, as a JSON string.
void append_string(std::string& out, std::string_view text);
/// 64-bit integers are strings in answers: JavaScript would round them.
template <typename Integer>
void append_integer_string(std::string& out, Integer value) {
  out += '"';
  out += std::to_string(value);
  out += '"';
}

/// RFC 3339 in UTC with milliseconds; nullopt outside the years 1 to 9999.
std::optional<std::string> format_time(int64_t unix_ms);
/// Milliseconds of an RFC 3339 time, or nullopt.
std::optional<int64_t> parse_time(std::string_view text);

}  // namespace millrace::api
