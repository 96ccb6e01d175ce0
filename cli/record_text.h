#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace millrace::cli {

/// How lines of the input become records of a request, and records of an answer become bytes.

struct RecordText {
  std::optional<std::string> key_separator = std::nullopt;
  bool json = false;
  bool repartition = false;

  /// The record as JSON for POST /records; nullopt for a blank line among JSON. Text that is no UTF-8 goes as BINARY.
  /// What JSON lines hold is passed on as it is, except that "offset" is dropped and a "timestamp" in RFC 3339 becomes
  /// milliseconds, so that what consume prints can be produced. The message does not name the line.
  /// Errors: kInvalidArgument NO_KEY_SEPARATOR, NOT_JSON, INVALID_TIMESTAMP.
  Result<std::optional<std::string>> record_of(std::string_view line) const;
};

/// The bytes of a key or value of an answer ({"type","data"}, or null: nullopt). JSON is its text.
/// Errors: kInvalidArgument INVALID_RECORD.
Result<std::optional<std::string>> bytes_of(std::string_view envelope);

}  // namespace millrace::cli
