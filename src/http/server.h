#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/heartbeat.h"
#include "base/result.h"
#include "http/options.h"
#include "http/router.h"
#include "http/stats.h"

namespace millrace::http {

/// The HTTP/1.1 server: listeners, `io-N` threads with one event loop each, and the sessions, each of which lives on
/// one of these threads for good. Owned by main; any thread may call anything but the destructor.
///
/// Order of life: listen() binds (so a port in use is told at once), start() accepts, stop() drains, the destructor
/// joins the threads. Responders and streams that outlive the server are harmless and do nothing.
class Server {
 public:
  /// Binds every address. Errors: ADDRESS_IN_USE, ADDRESS_UNUSABLE, INVALID_LISTEN_ADDRESS,
  /// UNAUTHENTICATED_LISTENER, SOCKET_IN_USE, each with what to do about it.
  static Result<std::unique_ptr<Server>> listen(Options options, std::shared_ptr<const Router> router, Health& health);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Starts the threads and accepts.
  void start();

  /// Stops accepting, tells long polls and streams (CancelReason::kShutdown), answers what is in flight with
  /// Connection: close, and cuts off what is left after `drain`. Then calls `drained` once, on an io thread (which
  /// must not destroy the server). Later calls change nothing and are not called back.
  void stop(std::chrono::milliseconds drain, std::function<void()> drained);
  /// stop() and wait for it.
  void stop_and_wait(std::chrono::milliseconds drain);

  /// "http://127.0.0.1:8480", "unix:/var/lib/millrace/http.sock"; with the ports the system chose.
  const std::vector<std::string>& urls() const;
  /// Of the first TCP listener; 0 when there is none.
  uint16_t port() const;
  const Stats& stats() const;
  const Options& options() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::http
