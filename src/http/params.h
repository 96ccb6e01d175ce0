#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace millrace::http {

/// The declaration of one path, query or header parameter of a route. It is the only place that says what the
/// parameter is: requests are checked against it before the handler runs, and /openapi.json is written from it.
///
///     Param::integer("limit", "How many records at most.").range(1, 10'000).otherwise("100")
struct Param {
  enum class In { kPath, kQuery, kHeader };
  enum class Type { kString, kInteger, kBoolean, kDuration, kSize };

  static Param string(std::string name, std::string description) { return {name, description, Type::kString}; }
  static Param integer(std::string name, std::string description) { return {name, description, Type::kInteger}; }
  /// "true" or "false".
  static Param boolean(std::string name, std::string description) { return {name, description, Type::kBoolean}; }
  /// "500ms", "30s", "5m", "2h", "7d"; the range is in milliseconds.
  static Param duration(std::string name, std::string description) { return {name, description, Type::kDuration}; }
  /// "4096B", "20MB" (1 KB is 1024 B); the range is in bytes.
  static Param size(std::string name, std::string description) { return {name, description, Type::kSize}; }

  Param(std::string param_name, std::string param_description, Type param_type);

  /// Inclusive. For a string, of its length in bytes.
  Param range(int64_t low, int64_t high) &&;
  /// The value when the request has none, written as a request would write it. Must itself be valid.
  Param otherwise(std::string text) &&;
  /// A string that must be one of these.
  Param one_of(std::vector<std::string> values) &&;
  Param required() &&;
  /// A request header. Query is the default; a parameter whose name stands in the path template is a path parameter.
  Param in_header() &&;

  /// Parses and checks one value: the number (milliseconds, bytes, 0 or 1), 0 for a string.
  /// INVALID_PARAMETER names the parameter, the value and what would be right.
  Result<int64_t> check(std::string_view text) const;

  std::string name;
  std::string description;
  Type type;
  In in = In::kQuery;
  int64_t low = 0;
  int64_t high = std::numeric_limits<int64_t>::max();
  bool is_required = false;
  std::optional<std::string> default_text;
  int64_t default_number = 0;
  std::vector<std::string> values;
};

/// The checked parameters of one request, read by declared name. Reading a name that the route does not declare is
/// an assertion, and so is reading one that is absent, not required and has no default: use has() or find_* there.
class Params {
 public:
  bool has(std::string_view name) const;
  std::string_view string(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::chrono::milliseconds duration(std::string_view name) const;
  uint64_t size(std::string_view name) const;
  std::optional<std::string_view> find_string(std::string_view name) const;
  std::optional<int64_t> find_integer(std::string_view name) const;
  std::optional<std::chrono::milliseconds> find_duration(std::string_view name) const;

 private:
  friend class Router;
  struct Value {
    const Param* param;
    std::string text;
    int64_t number;
  };
  /// Checks and keeps one value; DOUBLED_PARAMETER when there is one already.
  Status take(const Param& param, std::string text);
  const Param& declared(std::string_view name) const;
  const Value* given(std::string_view name) const;
  int64_t number(std::string_view name, Param::Type type) const;

  const std::vector<Param>* declared_ = nullptr;  ///< owned by the route, which outlives every request
  std::vector<Value> given_;
};

}  // namespace millrace::http
