#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/headers.h"
#include "http/params.h"

namespace millrace::http {

enum class Method : uint8_t { kGet, kHead, kPost, kPut, kPatch, kDelete, kOptions };
std::string_view to_string(Method method);

/// One request that passed every check: framing, limits, Host and Origin, route, parameters, content type.
struct Request {
  /// kGet for a HEAD request too: the session drops the body of the answer.
  Method method = Method::kGet;
  /// As sent, percent-encoded, query included. For logs.
  std::string target;
  /// Path, query and header parameters as the route declares them, decoded and checked.
  Params params;
  Headers headers;
  /// Move it out, do not copy it.
  std::string body;
  /// "127.0.0.1:50312", "[::1]:50312" or "unix".
  std::string peer;
  /// The client's X-Request-Id when it is usable, else one of ours. Every answer carries it back.
  std::string id;

  /// The media type of Content-Type in lower case, without parameters; "" when there is none.
  std::string content_type() const;
  /// Where an EventSource that reconnects wants to go on.
  std::optional<std::string_view> last_event_id() const { return headers.find("Last-Event-ID"); }
};

/// What a handler answers. Content-Length, Date, Connection and X-Request-Id are the session's business.
struct Response {
  int status = 200;
  Headers headers;
  std::string body;
  /// Sent as Content-Type when there is a body.
  std::string content_type = "application/json";

  static Response json(int status, std::string body) { return {status, {}, std::move(body), "application/json"}; }
  static Response text(int status, std::string body) {
    return {status, {}, std::move(body), "text/plain; charset=utf-8"};
  }
  static Response no_content() { return {204, {}, {}, {}}; }
};

/// The reason phrase of a status.
std::string_view reason_of(int status);

enum class CancelReason {
  kClientGone,  ///< the client closed its side; an answer will probably not be read
  kShutdown,    ///< the server drains: answer now with what there is, or be cut off at the end of the drain time
};

class ByteStream;
struct StreamOptions;
class Exchange;

/// The handler's way to answer one request: once, now or later, from any thread. Copies share the one answer. When
/// the last copy goes without an answer, the client gets 500 NO_ANSWER. Callbacks run on the request's io thread,
/// never under a lock; they are dropped (with what they capture) once there is an answer, so they may capture the
/// Responder itself.
class Responder {
 public:
  explicit Responder(std::shared_ptr<Exchange> exchange);

  /// Asserts that there was no answer yet.
  void respond(Response response) const;
  /// The same for an error, as application/problem+json (problem.h).
  void fail(const Error& error) const;
  /// For answers that race each other (a long poll's wake-up and its time-out): false when there was one already.
  bool try_respond(Response response) const;
  /// Value or problem, in one call.
  void respond(Result<Response> result) const;

  /// Starts a body of unknown length, which is an answer too. See byte_stream.h and sse.h. The returned stream is
  /// closed from the start when there was an answer already or the client is gone.
  ByteStream start_stream(Response head, const StreamOptions& options) const;

  /// True when nobody waits for the answer any more (client gone, or answered).
  bool finished() const;
  /// `fn` runs at most once: when the client goes or the server drains before there is an answer; at once when that
  /// has happened already. One per request: a second call replaces the first.
  void on_cancel(std::function<void(CancelReason)> fn) const;
  /// `fn` runs after `delay` unless there is an answer before. Several may be pending. Any thread may call.
  void after(std::chrono::milliseconds delay, std::function<void()> fn) const;
  /// Runs `fn` soon on the request's io thread. Posts of one burst cost one wake-up together. Dropped when the
  /// server has been destroyed.
  void post(std::function<void()> fn) const;

 private:
  struct Guard;
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Guard> guard_;
};

/// Called on an io thread: must not block. May answer at once or keep the responder.
using Handler = std::function<void(Request request, Responder responder)>;

/// Makes a handler of a function that answers at once.
Handler answer_now(std::function<Result<Response>(Request& request)> fn);

}  // namespace millrace::http
