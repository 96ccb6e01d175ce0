#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/admission.h"
#include "http/body_reader.h"
#include "http/event_loop.h"
#include "http/exchange.h"
#include "http/request_parser.h"
#include "http/server_context.h"
#include "http/stream_state.h"

namespace millrace::http {

class Session;

/// Keeps the sessions of one loop. The loop's thread.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual void on_session_closed(Session& session) = 0;
};

struct Peer {
  std::string text;     ///< "127.0.0.1:50312", "[::1]:50312" or "unix"
  std::string address;  ///< without the port; "" when it does not count against the cap of an address
  bool local = false;   ///< came over the Unix socket
};

/// One connection, on one loop for life. Reads one request at a time, calls its handler, writes the answer, and goes
/// on with what was pipelined meanwhile, so answers keep the order of requests. Every state but kHandling has a
/// deadline. Input that waits is bounded (one header while a request is handled), output is one answer or one
/// stream's queue.
class Session final : public ReadyHandler, public AnswerSink, public std::enable_shared_from_this<Session> {
 public:
  Session(SessionOwner& owner, std::shared_ptr<ServerContext> context, std::shared_ptr<EventLoop> loop, int fd,
          Peer peer);

  void start();
  /// Instead of start(): says why and closes.
  void refuse_connection(Response response);
  /// Finishes what is begun and closes.
  void drain();
  /// At once.
  void close();

  const Peer& peer() const { return peer_; }
  /// False for a connection that was only told why it is refused.
  bool admitted() const { return admitted_; }

  void on_readable() override;
  void on_writable() override;
  void on_fault(std::string_view what) override;
  void on_answer(std::shared_ptr<StreamState> stream) override;
  void on_stream_data() override;

 private:
  enum class State { kIdle, kHeader, kBody, kHandling, kWriting, kStreaming, kLingering, kClosed };

  // Input (session.cc).
  size_t room() const;
  void watch_input();
  void read_input();
  void take(std::string_view bytes);
  void resume();
  size_t process(std::string_view bytes);
  size_t read_header(std::string_view bytes, bool& more);
  size_t read_body(std::string_view bytes, bool& more);
  void begin_request(std::string_view header, bool body_follows);
  void begin_body(bool body_follows);
  bool charge_body();
  void finish_body();
  void dispatch();
  void on_end_of_input();

  // Output (session_output.cc).
  void refuse(const Refusal& refusal);
  void answer_without_handler(Answered answered);
  void send(Response response);
  void begin_stream(Response head, std::shared_ptr<StreamState> stream);
  void pump_stream();
  bool flush();
  void on_flushed();
  void finish_response();
  void close_in_order();
  std::string head_for(const Response& response, bool streaming);

  void set_deadline(milliseconds from_now);
  void clear_deadline() { deadline_ns_ = INT64_MAX; }
  void on_timer();
  void forget_request();

  SessionOwner& owner_;
  const std::shared_ptr<ServerContext> context_;
  const std::shared_ptr<EventLoop> loop_;
  const Peer peer_;
  Watch watch_;
  State state_ = State::kIdle;
  bool admitted_ = true;

  bool waiting_for_input_ = false;
  bool input_ended_ = false;
  bool processing_ = false;  ///< process() is below us on the stack and will go on by itself
  bool blank_line_skipped_ = false;
  std::string pending_;  ///< input not yet used
  size_t scanned_ = 0;   ///< of the pending header

  BodyReader reader_;
  RequestHead head_;
  std::optional<Admitted> request_;
  std::optional<Answered> refused_;  ///< the answer, when only the rest of a small body is still to be read
  std::string body_;
  size_t body_charged_ = 0;
  std::string request_id_;
  std::string cors_origin_;
  std::shared_ptr<Exchange> exchange_;
  int64_t dispatched_ns_ = 0;
  const uint64_t connection_;
  uint64_t requests_ = 0;

  bool head_only_ = false;
  bool keep_alive_ = true;
  bool linger_ = false;  ///< the client may still be sending: let it read the answer before the reset
  size_t lingered_bytes_ = 0;
  std::shared_ptr<StreamState> stream_;
  bool stream_ending_ = false;
  bool writing_ = false;
  std::string out_head_, out_body_;
  std::string_view out_tail_;
  size_t out_sent_ = 0;

  int64_t deadline_ns_ = INT64_MAX;
  TimerQueue::Id timer_{0, 0};
};

}  // namespace millrace::http
