#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/chunked.h"
#include "http/refusal.h"
#include "http/request_parser.h"

namespace millrace::http {

/// Collects one request body, whose framing check_framing() has approved.
class BodyReader {
 public:
  void begin(const RequestHead& head);
  /// Appends to `body`, which must not outgrow `limit`, and sets `used`; bytes beyond belong to the next request.
  std::optional<Refusal> feed(std::string_view bytes, uint64_t limit, std::string& body, size_t& used);
  bool done() const { return chunked_ ? decoder_.done() : left_ == 0; }

 private:
  std::optional<Refusal> feed_chunked(std::string_view bytes, uint64_t limit, std::string& body, size_t& used);

  bool chunked_ = false;
  uint64_t left_ = 0;
  ChunkedDecoder decoder_;
};

}  // namespace millrace::http
