#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace millrace::cli {

/// Where reading starts, as --from says it.
struct StartPosition {
  struct Earliest {};
  struct Latest {};
  struct Offset {
    uint64_t offset = 0;
  };
  /// The first record of at least that time.
  struct Time {
    int64_t ms = 0;
  };
  /// Partitions and their next offsets; the others start at their earliest.
  using Vector = std::map<uint32_t, uint64_t>;

  std::variant<Earliest, Latest, Offset, Time, Vector> value = Earliest();

  /// "earliest", "latest", "42", "0:12,1:9", "2026-05-01T12:00:00Z", "2026-05-01", or "15m" (that long before
  /// `now_ms`). Errors: kInvalidArgument INVALID_POSITION.
  static Result<StartPosition> parse(std::string_view text, int64_t now_ms);
};

/// RFC 3339 with "Z" or a numeric zone, or a date alone (its midnight, UTC), as milliseconds since 1970; digits beyond
/// are cut off. nullopt when it is none, or no date of the calendar.
std::optional<int64_t> parse_time(std::string_view text);

/// The whole text as a number.
std::optional<uint64_t> parse_number(std::string_view text);

}  // namespace millrace::cli
