#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/headers.h"
#include "http/refusal.h"

namespace millrace::http {

/// Start line and fields of one request, as received.
struct RequestHead {
  std::string method;
  std::string target;
  int version = 11;  ///< 10 or 11
  Headers headers;
  bool keep_alive = false;
  std::optional<uint64_t> content_length;
  bool chunked = false;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

/// Parses a whole header, CRLFCRLF included and nothing after it, with Beast's parser. What Beast lets pass and must
/// not is in request_checks.h; the body is body_reader.h's.
std::optional<Refusal> parse_head(std::string_view bytes, RequestHead& head);

}  // namespace millrace::http
