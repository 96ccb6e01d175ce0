#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/http/test_server.h"

namespace millrace::http::tests {
namespace {

using namespace std::chrono_literals;

std::string code_of(const RawSocket::Answer& answer) {
  return nlohmann::json::parse(answer.body)["code"];
}

TEST(Limits, ASlowHeaderIsCutOff) {
  Options options = TestServer::small_options();
  options.request_deadline = 50ms;
  TestServer server(options);
  RawSocket socket = server.connect();
  socket.send("GET /v1/hello HTTP/1.1\r\nHost: ");
  auto answer = socket.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
  EXPECT_EQ(code_of(*answer), "REQUEST_TIMEOUT");
  socket.shutdown_write();
  EXPECT_EQ(socket.read_all(), "");
  EXPECT_EQ(server.rejected(Rejected::kTimeout), 1u);
}

// Progress does not help: the deadline is for the whole request.
TEST(Limits, ADrippingBodyIsCutOff) {
  Options options = TestServer::small_options();
  options.request_deadline = 100ms;
  TestServer server(options);
  RawSocket socket = server.connect();
  socket.send(
      fmt::format("POST /v1/echo HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n"
                  "Content-Length: 1000000\r\n\r\n",
                  server.host()));
  while (server.rejected(Rejected::kTimeout) == 0) socket.send_some("x");
  auto answer = socket.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
  EXPECT_EQ(server.calls("/v1/echo"), 0);
}

TEST(Limits, AnIdleConnectionIsClosed) {
  Options options = TestServer::small_options();
  options.idle_timeout = 50ms;
  TestServer server(options);
  RawSocket silent = server.connect(), kept = server.connect();
  kept.send(server.get("/v1/hello"));
  EXPECT_EQ(kept.read_answer()->status, 200);
  EXPECT_EQ(kept.read_all(), "");
  EXPECT_EQ(silent.read_all(), "");
}

TEST(Limits, AReaderThatTakesNothingIsCutOff) {
  Options options = TestServer::small_options();
  options.write_timeout = 100ms;
  TestServer server(options);
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/bytes?count=67108864"));
  eventually([&] { return server.stats().connections_closed == 1; });
  EXPECT_LT(socket.read_all().size(), 67108864u);
}

TEST(Limits, ADeclaredGibibyteIsRefusedUnread) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(
      fmt::format("POST /v1/echo HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n"
                  "Content-Length: 1073741824\r\n\r\n",
                  server.host()));
  auto answer = socket.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 413);
  EXPECT_EQ(code_of(*answer), "BODY_TOO_LARGE");
  EXPECT_EQ(answer->field("Connection"), "close");
  EXPECT_EQ(server.stats().body_bytes, 0);
}

// The client is in the middle of sending: it must get the answer, not a reset.
TEST(Limits, TheRefusalReachesAClientThatIsStillSending) {
  Options options = TestServer::small_options();
  options.max_body_bytes = 100'000;
  TestServer server(options);
  for (bool chunked : {false, true}) {
    RawSocket socket = server.connect();
    socket.send(fmt::format("POST /v1/echo HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{}\r\n\r\n",
                            server.host(), chunked ? "Transfer-Encoding: chunked" : "Content-Length: 4000000"));
    std::string piece = chunked ? "10000\r\n" + std::string(65536, 'x') + "\r\n" : std::string(65536, 'x');
    for (int i = 0; i < 40; ++i) socket.send(piece);
    auto answer = socket.read_answer();
    ASSERT_TRUE(answer) << (socket.was_reset() ? "reset" : "end");
    EXPECT_EQ(answer->status, 413);
  }
}

TEST(Limits, BodiesInFlightAreBounded) {
  Options options = TestServer::small_options();
  options.max_body_bytes_in_flight = 1'000'000;
  TestServer server(options, [](Router&) {});
  RawSocket first = server.connect(), second = server.connect();
  std::string head = fmt::format(
      "POST /v1/echo HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 700000\r\n\r\n",
      server.host());
  std::string body(700'000, 'x');
  first.send(head + body.substr(0, 600'000));
  eventually([&] { return server.stats().body_bytes >= 600'000; });
  second.send(head + body);
  auto answer = second.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(code_of(*answer), "BODY_MEMORY_EXHAUSTED");
  EXPECT_EQ(answer->field("Retry-After"), "1");
  first.send(body.substr(600'000));
  EXPECT_EQ(first.read_answer()->body.size(), 700'000u);
  eventually([&] { return server.stats().body_bytes == 0; });
}

TEST(Limits, BodiesCountUntilTheirHandlerLetsGo) {
  std::optional<std::pair<Request, Responder>> kept;
  std::atomic<bool> have{false};
  TestServer server(TestServer::small_options(), [&](Router& router) {
    router.add({.method = Method::kPost,
                .path = "/v1/keep",
                .operation_id = "keep",
                .body = BodyRule::kRequired,
                .answers = {{200, "x"}},
                .handler = [&](Request request, Responder responder) {
                  kept.emplace(std::move(request), std::move(responder));
                  have = true;
                }});
  });
  RawSocket socket = server.connect();
  socket.send(server.post("/v1/keep", std::string(100'000, 'x')));
  eventually([&] { return have.load(); });
  socket.abort();
  eventually([&] { return server.stats().connections() == 0; });
  EXPECT_GE(server.stats().body_bytes, 100'000);
  kept.reset();
  EXPECT_EQ(server.stats().body_bytes, 0);
}

TEST(Limits, ARoutesOwnBodyLimit) {
  TestServer server(TestServer::small_options(), [](Router& router) {
    router.add({.method = Method::kPost,
                .path = "/v1/small",
                .operation_id = "small",
                .body = BodyRule::kRequired,
                .max_body = 10,
                .answers = {{200, "x"}},
                .handler = answer_now([](Request&) -> Result<Response> { return Response::no_content(); })});
  });
  RawSocket socket = server.connect();
  socket.send(server.post("/v1/small", "0123456789"));
  EXPECT_EQ(socket.read_answer()->status, 204);
  socket.send(server.post("/v1/small", ""));
  EXPECT_EQ(code_of(*socket.read_answer()), "BODY_MISSING");
  socket.send(server.post("/v1/small", "0123456789a"));
  EXPECT_EQ(socket.read_answer()->status, 413);
}

TEST(Limits, TooManyConnectionsAreToldWhy) {
  Options options = TestServer::small_options();
  options.max_connections = 3;
  TestServer server(options);
  std::vector<RawSocket> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(server.connect());
    open.back().send(server.get("/v1/hello"));
    EXPECT_EQ(open.back().read_answer()->status, 200);
  }
  RawSocket refused = server.connect();
  refused.send(server.get("/v1/trap"));
  auto answer = refused.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(code_of(*answer), "TOO_MANY_CONNECTIONS");
  refused.shutdown_write();
  EXPECT_EQ(refused.read_all(), "");
  EXPECT_EQ(server.calls("/v1/trap"), 0);
  open.pop_back();
  eventually([&] {
    RawSocket next = server.connect();
    next.send(server.get("/v1/hello"));
    auto retried = next.read_answer();
    return retried && retried->status == 200;
  });
}

TEST(Limits, OneAddressCannotTakeEverything) {
  Options options = TestServer::small_options();
  options.max_connections_per_address = 2;
  auto path = std::filesystem::temp_directory_path() / fmt::format("millrace-limits-{}.sock", ::getpid());
  options.unix_socket = path;
  TestServer server(options);
  RawSocket one = server.connect(), two = server.connect(), three = server.connect();
  auto answer = three.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(answer->field("Retry-After"), "1");
  EXPECT_EQ(server.rejected(Rejected::kTooManyFromAddress), 1u);
  for (int i = 0; i < 5; ++i) {
    RawSocket local = RawSocket::unix_socket(path);
    local.send(server.get("/v1/hello"));
    EXPECT_EQ(local.read_answer()->status, 200);
  }
  RawSocket elsewhere = RawSocket::tcp(server.server().port(), "127.0.0.1");
  EXPECT_EQ(elsewhere.read_answer()->status, 429);
}

TEST(Limits, RequestsPerConnection) {
  Options options = TestServer::small_options();
  options.max_requests_per_connection = 2;
  TestServer server(options);
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/hello") + server.get("/v1/hello") + server.get("/v1/trap"));
  EXPECT_EQ(socket.read_answer()->field("Connection"), "");
  EXPECT_EQ(socket.read_answer()->field("Connection"), "close");
  socket.shutdown_write();
  EXPECT_EQ(socket.read_all(), "");
  EXPECT_EQ(server.calls("/v1/trap"), 0);
}

TEST(Limits, TargetLength) {
  Options options = TestServer::small_options();
  options.max_target_bytes = 100;
  TestServer server(options);
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/things/" + std::string(100, 'x')));
  EXPECT_EQ(socket.read_answer()->status, 414);
}

/// Sets the soft limit of open files and restores it.
class FileLimit {
 public:
  explicit FileLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit now = before_;
    now.rlim_cur = std::min(limit, before_.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &now) != 0) throw std::runtime_error("setrlimit");
  }
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

int open_files() {
  int fd = ::open("/dev/null", O_RDONLY);
  ::close(fd);
  return fd;  // the lowest free number; good enough when nothing was closed in between
}

TEST(Limits, TwoThousandIdleConnections) {
  FileLimit limit(10'000);
  TestServer server;
  std::vector<RawSocket> idle;
  for (int i = 0; i < 2000; ++i) idle.push_back(server.connect());
  eventually([&] { return server.stats().connections() == 2000; });
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/hello"));
  EXPECT_EQ(socket.read_answer()->status, 200);
  for (int i : {0, 999, 1999}) {
    idle[static_cast<size_t>(i)].send(server.get("/v1/hello"));
    EXPECT_EQ(idle[static_cast<size_t>(i)].read_answer()->status, 200);
  }
}

// The clients are in this process too, so they are connected, as far as the kernel goes, before the limit falls.
TEST(Limits, OutOfDescriptorsTheServerNeitherSpinsNorStops) {
  TestServer server;
  std::vector<RawSocket> clients;
  {
    RawSocket warm = server.connect();
    warm.send(server.get("/v1/hello"));
    EXPECT_EQ(warm.read_answer()->status, 200);
  }
  eventually([&] { return server.stats().connections() == 0; });
  {
    // Each client and each session take one descriptor; there is room for about ten sessions.
    int in_use = open_files();
    FileLimit limit(static_cast<rlim_t>(in_use + 50));
    for (int i = 0; i < 40; ++i) clients.push_back(server.connect());
    eventually([&] {
      return server.stats().connections() + server.rejected(Rejected::kNoDescriptors) >= 40 ||
             server.stats().paused_listeners > 0;
    });
    int answered = 0, told = 0;
    for (auto& client : clients) {
      client.send(server.get("/v1/hello"));
      client.shutdown_write();
      std::string all = client.read_all();
      answered += all.find("hello") != std::string::npos ? 1 : 0;
      told += all.find("NO_DESCRIPTORS") != std::string::npos ? 1 : 0;
      client.close();
    }
    EXPECT_GT(answered, 0);
    EXPECT_GT(server.rejected(Rejected::kNoDescriptors) + server.stats().accept_pauses, 0u);
    EXPECT_GT(told, 0);
    // Still under the limit, and served again.
    RawSocket after = server.connect();
    after.send(server.get("/v1/hello"));
    EXPECT_EQ(after.read_answer()->status, 200);
  }
  // A loop that spins would have paused or rejected without end.
  EXPECT_LE(server.rejected(Rejected::kNoDescriptors), 41u);
  EXPECT_LE(server.stats().accept_pauses, 41u);
  EXPECT_EQ(server.stats().paused_listeners, 0);
}

// Without even a spare descriptor accepting pauses; it goes on when a session closes.
TEST(Limits, APausedListenerGoesOnWhenAConnectionCloses) {
  TestServer server;
  RawSocket held = server.connect();
  held.send(server.get("/v1/hello"));
  EXPECT_EQ(held.read_answer()->status, 200);
  RawSocket waiting = server.connect();
  eventually([&] { return server.stats().connections() == 2; });
  std::vector<int> hogs;
  FileLimit limit(static_cast<rlim_t>(open_files() + 20));
  while (true) {
    int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0) break;
    hogs.push_back(fd);
  }
  // Room for one client socket, none for its session: the spare descriptor is used.
  ::close(hogs.back());
  hogs.pop_back();
  RawSocket turned_away = server.connect();
  EXPECT_NE(turned_away.read_all().find("NO_DESCRIPTORS"), std::string::npos);
  turned_away.close();
  held.close();
  eventually([&] { return server.stats().connections() == 1; });
  RawSocket next = server.connect();
  next.send(server.get("/v1/hello"));
  EXPECT_EQ(next.read_answer()->status, 200);
  for (int fd : hogs) ::close(fd);
}

}  // namespace
}  // namespace millrace::http::tests
