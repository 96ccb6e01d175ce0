#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/headers.h"

namespace millrace::http {

/// Beast's response parser without Beast in the header, for the client. One object per connection.
class ResponseParser {
 public:
  /// False stops: feed() then returns what was used.
  using BodySink = std::function<bool(std::string_view)>;

  explicit ResponseParser(size_t max_header_bytes);
  ~ResponseParser();

  /// Before each response. `no_body`: it answers a HEAD.
  void reset(bool no_body, BodySink sink);
  /// Returns what was used; the rest must be given again together with what comes next. BAD_RESPONSE.
  Result<size_t> feed(std::string_view bytes);
  /// The connection ended: fine for a body without length, else BAD_RESPONSE.
  Status end();

  bool started() const;
  bool head_done() const;
  bool done() const;
  /// The sink said stop.
  bool stopped() const;
  bool keep_alive() const;
  int status() const;
  Headers& headers();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::http
