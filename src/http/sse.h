#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "http/byte_stream.h"

namespace millrace::http {

struct EventOptions {
  size_t max_queued_bytes = 256 * 1024;
  /// A comment line keeps proxies and the client's time-out content.
  std::chrono::milliseconds heartbeat{15'000};
  /// How long the client should wait before it reconnects (the `retry:` field).
  std::chrono::milliseconds reconnect{1'000};
};

/// Server-sent events (WHATWG HTML, section 9.2) on a ByteStream, whose rules for threads, back-pressure and
/// callbacks hold. When the server drains, the client gets the comment ": server is stopping" and an orderly end,
/// and reconnects with Last-Event-ID (Request::last_event_id) to whatever runs next.
class EventStream {
 public:
  /// Answers the request with 200 text/event-stream.
  static EventStream start(const Responder& responder, const EventOptions& options = {});

  /// One event. `event` "" means "message", `id` "" sends no id. Line ends in `data` become several data lines.
  /// False: full (wait for on_writable and send again) or closed; then nothing of it is sent.
  bool send(std::string_view event, std::string_view id, std::string_view data) const;
  bool comment(std::string_view text) const;

  bool closed() const { return bytes_.closed(); }
  size_t queued_bytes() const { return bytes_.queued_bytes(); }
  void on_writable(std::function<void()> fn) const { bytes_.on_writable(std::move(fn)); }
  void on_close(std::function<void(CancelReason)> fn) const { bytes_.on_close(std::move(fn)); }
  void close() const { bytes_.close(); }
  void post(std::function<void()> fn) const { bytes_.post(std::move(fn)); }
  void after(std::chrono::milliseconds delay, std::function<void()> fn) const { bytes_.after(delay, std::move(fn)); }

 private:
  explicit EventStream(ByteStream bytes) : bytes_(std::move(bytes)) {}

  ByteStream bytes_;
};

}  // namespace millrace::http
