#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/heartbeat.h"
#include "base/mutex.h"
#include "http/client.h"
#include "http/server.h"
#include "tests/support/raw_socket.h"

namespace millrace::http::tests {

using millrace::tests::RawSocket;

/// A server on a port of the system's choice, with routes to test with:
///   GET  /v1/hello              "hello"
///   POST /v1/echo               the body
///   GET  /v1/things/{thing}     parameters back as JSON; DELETE: 204
///   GET  /v1/trap               only counts: a smuggled request would ask for it
///   GET  /v1/wait               keeps its Responder for the test (take_waiting)
///   GET  /v1/stream             as above
///   GET  /v1/bytes?count=       that many bytes
class TestServer {
 public:
  explicit TestServer(Options options = small_options(), std::function<void(Router&)> more_routes = nullptr);
  ~TestServer();

  /// One thread, port 0, time-outs long enough that no test runs into one unless it means to.
  static Options small_options();

  RawSocket connect() const { return RawSocket::tcp(server().port()); }
  Client client() const;
  std::string host() const { return "127.0.0.1:" + std::to_string(server().port()); }
  /// "GET target HTTP/1.1" with Host and the given further fields ("Name: value\r\n").
  std::string get(const std::string& target, const std::string& fields = "") const;
  std::string post(const std::string& target, const std::string& body, const std::string& fields = "") const;
  Server& server() { return *server_; }
  const Server& server() const { return *server_; }
  void destroy() { server_.reset(); }
  const Stats& stats() const { return server_->stats(); }
  uint64_t rejected(Rejected reason) const { return stats().rejected[static_cast<size_t>(reason)].load(); }
  const Router& router() const { return *router_; }
  Health& health() { return health_; }

  /// Waits until a handler of /v1/wait or /v1/stream was called, and takes its responder.
  Responder take_waiting();
  /// Requests that reached the handler of the path.
  int calls(const std::string& path) const;

 private:
  void add_routes(Router& router);
  void count(const std::string& path);

  Health health_{SystemClock::instance()};
  std::shared_ptr<Router> router_;
  std::unique_ptr<Server> server_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Responder> waiting_ GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ GUARDED_BY(mutex_);
};

/// Waits until `condition` holds, without a limit of its own (ctest has one).
void eventually(const std::function<bool()>& condition);

}  // namespace millrace::http::tests
