#pragma once

#include <cstdint>
#include <memory>
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

/// Beast's request parser without Beast in the header. One object per connection; reset() between messages. Trailer
/// fields are parsed and dropped: nothing may arrive after the checks have been made.
class RequestParser {
 public:
  RequestParser();
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;

  void reset();
  /// `bytes` is the whole header, CRLFCRLF included and nothing after it.
  std::optional<Refusal> parse_head(std::string_view bytes, RequestHead& head);
  /// Appends what `bytes` holds of the body to `body` and sets `used`; what is not used must be given again together
  /// with what comes next. `limit` bounds the body's size.
  std::optional<Refusal> parse_body(std::string_view bytes, uint64_t limit, std::string& body, size_t& used);
  /// The message is complete.
  bool done() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::http
