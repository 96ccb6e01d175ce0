#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/request.h"

namespace millrace::http {

struct StreamOptions {
  /// Bytes that may wait for a slow client beside what the kernel holds.
  size_t max_queued_bytes = 256 * 1024;
  /// Sent after that long without other data, so that dead connections are noticed; 0: never.
  std::chrono::milliseconds heartbeat{0};
  std::string heartbeat_bytes = {};
  /// The last bytes when the server drains.
  std::string goodbye_bytes = {};
};

class StreamState;

/// A response body of unknown length: chunked on HTTP/1.1, until close on 1.0. A handle: copies share the stream,
/// which ends well when the last copy goes. Any thread may call anything; callbacks run on the stream's io thread
/// and are dropped when it has ended, so they may capture the stream.
///
/// Back-pressure: write() says false when the queue is full; then on_writable's function is called once when half of
/// it has drained. A client that takes nothing for the server's write time-out is cut off.
class ByteStream {
 public:
  explicit ByteStream(std::shared_ptr<StreamState> state);

  /// True: accepted (not yet sent). False: full, or closed. Something larger than the whole queue is accepted when
  /// the queue is empty.
  bool write(std::string_view bytes) const;
  bool closed() const;
  size_t queued_bytes() const;

  /// Called again and again, each time a refused write could succeed now. One function: a second call replaces it.
  void on_writable(std::function<void()> fn) const;
  /// Called once when the client goes or the server drains (after which writes are refused); at once when that has
  /// happened already. Not called after close().
  void on_close(std::function<void(CancelReason)> fn) const;
  /// Ends the body after what is queued.
  void close() const;
  /// As Responder::post and Responder::after; a timer is dropped when the stream has ended.
  void post(std::function<void()> fn) const;
  void after(std::chrono::milliseconds delay, std::function<void()> fn) const;

 private:
  struct Guard;
  std::shared_ptr<StreamState> state_;
  std::shared_ptr<Guard> guard_;
};

}  // namespace millrace::http
