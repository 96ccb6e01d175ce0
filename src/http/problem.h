#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/request.h"

namespace millrace::http {

/// What a client may conclude about sending the same request again.
enum class Retry {
  kSafe,     ///< nothing was done; the same request may succeed later
  kUnknown,  ///< it may have been done: repeat only with the same Idempotency-Key
  kNo,       ///< the same request will fail again
};
std::string_view to_string(Retry retry);

/// How one kind of error looks over HTTP. The one table of the product; docs/http.md shows it.
struct ProblemKind {
  ErrorKind kind;
  int status;
  Retry retry;
  std::string_view title;
  int retry_after_seconds;  ///< 0: no Retry-After
};
const ProblemKind& problem_kind(ErrorKind kind);

/// RFC 9457 application/problem+json:
/// {type: "urn:millrace:problem:CODE", title, status, detail, code, retry, pointer?}
Response problem(const Error& error);

/// For what only HTTP knows (404 of an unknown path, 405, 408, 413, ...), with its own status.
Response problem(int status, std::string_view code, std::string_view detail, Retry retry = Retry::kNo,
                 std::string_view pointer = {});

/// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

}  // namespace millrace::http
