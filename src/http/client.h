#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "http/headers.h"

namespace millrace::http {

/// A blocking HTTP/1.1 client over one kept-alive connection. One thread at a time uses it. Nothing is sent twice
/// behind the caller's back, save a GET whose kept connection the server closed before it answered anything.
class Client {
 public:
  struct Options {
    std::chrono::milliseconds connect_timeout{5'000};
    /// Without any byte going either way.
    std::chrono::milliseconds idle_timeout{60'000};
    size_t max_header_bytes = 64 * 1024;
    /// A longer body is RESPONSE_TOO_LARGE. Does not bound stream().
    size_t max_body_bytes = 256 * 1024 * 1024;
  };
  using Fields = std::vector<std::pair<std::string, std::string>>;
  struct Response {
    int status = 0;
    Headers headers;
    std::string body;
  };
  /// False ends the stream.
  using Sink = std::function<bool(std::string_view bytes)>;

  /// "http://host:port", "host:port", "unix:/path/to/socket" or "/path/to/socket". Does not connect yet.
  /// INVALID_URL.
  static Result<Client> create(std::string_view url, Options options);
  static Result<Client> create(std::string_view url) { return create(url, Options()); }
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// `target` is path and query, percent-encoded. A body without Content-Type is sent as application/json.
  /// Any status is a Response. Errors: CONNECT_FAILED (nothing was sent), CONNECTION_LOST and TIMED_OUT (kUnknown
  /// when the request may have been carried out), BAD_RESPONSE, RESPONSE_TOO_LARGE; each names the server.
  Result<Response> request(std::string_view method, std::string_view target, const Fields& fields = {},
                           std::string_view body = {});
  Result<Response> get(std::string_view target) { return request("GET", target); }
  Result<Response> post(std::string_view target, std::string_view body) { return request("POST", target, {}, body); }

  /// Passes a 2xx body on as it comes; the connection is closed afterwards. Other answers are read whole. The
  /// returned response has the body only when it is not 2xx.
  Result<Response> stream(std::string_view target, const Fields& fields, const Sink& sink);
  /// The same, line by line (LF or CRLF cut off). A line over `max_line` bytes is RESPONSE_TOO_LARGE.
  Result<Response> stream_lines(std::string_view target, const Fields& fields, const Sink& sink,
                                size_t max_line = 32 * 1024 * 1024);

  struct Event {
    std::string event = "message";
    std::string id;  ///< the last one seen, also when this event carries none
    std::string data;
  };
  /// Server-sent events. Comments are skipped.
  Result<Response> stream_events(std::string_view target, const Fields& fields,
                                 const std::function<bool(const Event&)>& sink);

  /// Makes a blocked call on another thread, and every later one, return INTERRUPTED. The one function any thread
  /// may call.
  void interrupt();
  void close();
  /// As given, for messages.
  const std::string& url() const;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// `text` as one path segment or query value.
std::string percent_encode(std::string_view text);

}  // namespace millrace::http
