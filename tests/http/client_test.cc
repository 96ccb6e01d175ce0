#include "http/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "http/sse.h"
#include "tests/http/test_server.h"
#include "tests/support/temp_dir.h"

namespace millrace::http::tests {
namespace {

using namespace std::chrono_literals;

/// Answers each connection, one after the other, with the given bytes once a request's header has come.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> answers, bool hold_open = false) : hold_open_(hold_open) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(fd_, 8);
    socklen_t size = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answers] { run(answers); });
  }
  ~ScriptedServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
    for (int held : held_) ::close(held);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }

 private:
  void run(const std::vector<std::string>& answers) {
    for (const std::string& answer : answers) {
      int peer = ::accept(fd_, nullptr, nullptr);
      if (peer < 0) return;
      ++connections_;
      std::string request;
      char bytes[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        ssize_t got = ::recv(peer, bytes, sizeof bytes, 0);
        if (got <= 0) break;
        request.append(bytes, static_cast<size_t>(got));
      }
      for (char c : answer) ::send(peer, &c, 1, MSG_NOSIGNAL);
      if (hold_open_)
        held_.push_back(peer);
      else
        ::close(peer);
    }
  }
  int fd_;
  uint16_t port_ = 0;
  const bool hold_open_;
  std::atomic<int> connections_{0};
  std::vector<int> held_;
  std::thread thread_;
};

Client client_of(const std::string& url, Client::Options options = {}) {
  return std::move(*Client::create(url, options));
}

TEST(Client, KeepsItsConnection) {
  TestServer server;
  Client client = server.client();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.get("/v1/hello")->body, "hello");
    EXPECT_EQ(client.post("/v1/echo", "{}")->body, "{}");
  }
  EXPECT_EQ(client.request("DELETE", "/v1/things/x")->status, 204);
  EXPECT_EQ(client.request("HEAD", "/v1/hello")->headers.find("content-length"), "5");
  EXPECT_EQ(client.request("DELETE", "/v1/things/none")->status, 404);
  EXPECT_EQ(client.get("/v1/things/" + percent_encode("a/b:c d\xC3\xA4"))->body.substr(0, 10), "a/b:c d\xC3\xA4|");
  EXPECT_EQ(server.stats().connections_opened, 1u);
}

TEST(Client, LargeBodiesBothWays) {
  TestServer server;
  Client client = server.client();
  std::string body(15'000'000, 'x');
  EXPECT_TRUE(client.post("/v1/echo", body)->body == body);
  EXPECT_EQ(client.get("/v1/bytes?count=50000000")->body.size(), 50'000'000u);
}

TEST(Client, OverAUnixSocket) {
  millrace::tests::TempDir dir;
  Options options = TestServer::small_options();
  options.listen = {};
  options.unix_socket = dir.path() / "s";
  TestServer server(options);
  EXPECT_EQ(client_of("unix:" + options.unix_socket.string()).get("/v1/hello")->body, "hello");
  EXPECT_EQ(client_of(options.unix_socket.string()).get("/v1/hello")->body, "hello");
}

TEST(Client, ReconnectsWhenTheServerClosedTheKeptConnection) {
  Options options = TestServer::small_options();
  options.max_requests_per_connection = 1;
  TestServer server(options);
  Client client = server.client();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.post("/v1/echo", "{}")->body, "{}");

  Options impatient = TestServer::small_options();
  impatient.idle_timeout = 1ms;
  TestServer closing(impatient);
  Client other = closing.client();
  EXPECT_EQ(other.get("/v1/hello")->body, "hello");
  eventually([&] { return closing.stats().connections() == 0; });
  EXPECT_EQ(other.post("/v1/echo", "{}")->body, "{}");
}

TEST(Client, AnEarlyRefusalIsRead) {
  Options options = TestServer::small_options();
  options.max_body_bytes = 1000;
  TestServer server(options);
  Client client = server.client();
  auto answer = client.post("/v1/echo", std::string(20'000'000, 'x'));
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(answer->status, 413);
  EXPECT_EQ(client.get("/v1/hello")->body, "hello");
}

TEST(Client, SaysWhyItCannotConnect) {
  std::string url;
  {
    TestServer server;
    url = server.server().urls()[0];
  }
  auto refused = client_of(url).get("/");
  EXPECT_EQ(refused.error().code, "CONNECT_FAILED");
  EXPECT_EQ(refused.error().message, fmt::format("cannot connect to {}: Connection refused", url));
  EXPECT_EQ(client_of("unix:/nonexistent/socket").get("/").error().message,
            "cannot connect to unix:/nonexistent/socket: No such file or directory");
  for (const char* bad :
       {"", "https://x", "http://x/path", "http://x:0", "http://x:99999", "http://x:y", "unix:", "ftp://x", "http://"})
    EXPECT_EQ(Client::create(bad).error().code, "INVALID_URL") << bad;
  EXPECT_TRUE(Client::create("unix:" + std::string(200, 'x')).error().message.find("too long") != std::string::npos);
}

TEST(Client, TimesOut) {
  ScriptedServer server({""}, true);
  Client client = client_of(server.url(), {.idle_timeout = 20ms});
  auto outcome = client.post("/v1/x", "{}");
  EXPECT_EQ(outcome.error().code, "TIMED_OUT");
  EXPECT_EQ(outcome.error().kind, ErrorKind::kUnknown) << "it may have been carried out";
}

TEST(Client, ALostPostIsUnknownAndALostGetIsNot) {
  ScriptedServer server({"", "", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", "garbage\r\n\r\n"});
  Client client = client_of(server.url());
  EXPECT_EQ(client.post("/x", "{}").error().kind, ErrorKind::kUnknown);
  auto get = client.get("/x");
  EXPECT_EQ(get.error().code, "CONNECTION_LOST");
  EXPECT_EQ(get.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(client.get("/x").error().code, "CONNECTION_LOST") << "cut in the body";
  EXPECT_EQ(client.get("/x").error().code, "BAD_RESPONSE");
  EXPECT_EQ(server.connections(), 4);
}

TEST(Client, ReadsEveryFraming) {
  ScriptedServer server(
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: x\r\n\r\n",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nuntil the end",
       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\n"
       "Content-Length: 2\r\n\r\nok",
       "HTTP/1.1 204 No Content\r\n\r\n",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n"});
  auto next = [&] { return client_of(server.url()).get("/"); };
  EXPECT_EQ(next()->body, "abcde");
  EXPECT_EQ(next()->body, "");
  EXPECT_EQ(next()->body, "until the end");
  auto created = next();
  EXPECT_EQ(created->status, 201);
  EXPECT_EQ(created->body, "ok");
  EXPECT_EQ(created->headers.find("Link"), std::nullopt);
  EXPECT_EQ(next()->status, 204);
  EXPECT_EQ(next().error().code, "BAD_RESPONSE");
}

TEST(Client, BoundsWhatItTakes) {
  TestServer server;
  Client client = client_of(server.server().urls()[0], {.max_body_bytes = 1000});
  EXPECT_EQ(client.get("/v1/bytes?count=1001").error().code, "RESPONSE_TOO_LARGE");
  EXPECT_EQ(client.get("/v1/bytes?count=1000")->body.size(), 1000u);
  ScriptedServer endless({"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')});
  EXPECT_EQ(client_of(endless.url()).get("/").error().code, "BAD_RESPONSE");
}

TEST(Client, StreamsBytesLinesAndEvents) {
  TestServer server;
  Client client = server.client();
  size_t total = 0;
  auto answer = client.stream("/v1/bytes?count=3000000", {}, [&](std::string_view bytes) {
    total += bytes.size();
    return true;
  });
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "");
  EXPECT_EQ(total, 3'000'000u);

  auto error = client.stream("/v1/nothing", {}, [](std::string_view) { return true; });
  EXPECT_EQ(error->status, 404);
  EXPECT_NE(error->body.find("NO_SUCH_PATH"), std::string::npos);

  std::thread producer([&] {
    EventStream stream = EventStream::start(server.take_waiting());
    stream.send("record", "7", "a\nb");
    stream.comment("x");
    stream.send("", "", "c");
    stream.close();
  });
  std::vector<std::string> seen;
  answer = client.stream_events("/v1/stream", {{"Last-Event-ID", "6"}}, [&](const Client::Event& event) {
    seen.push_back(event.event + "/" + event.id + "/" + event.data);
    return true;
  });
  producer.join();
  ASSERT_TRUE(answer);
  EXPECT_EQ(seen, (std::vector<std::string>{"record/7/a\nb", "message/7/c"}));

  ScriptedServer lines({"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\none\r\n\ntwo\nx",
                        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345"});
  seen.clear();
  client_of(lines.url()).stream_lines("/", {}, [&](std::string_view line) {
    seen.emplace_back(line);
    return true;
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "", "two", "x"}));
  EXPECT_EQ(client_of(lines.url())
                .stream_lines(
                    "/", {}, [](std::string_view) { return true; }, 4)
                .error()
                .code,
            "RESPONSE_TOO_LARGE");
}

TEST(Client, ASinkEndsTheStream) {
  TestServer server;
  Client client = server.client();
  std::thread producer([&] {
    EventStream stream = EventStream::start(server.take_waiting());
    while (stream.send("", "1", "x") || !stream.closed()) std::this_thread::yield();
  });
  int seen = 0;
  auto answer = client.stream_events("/v1/stream", {}, [&](const Client::Event&) { return ++seen < 3; });
  EXPECT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(seen, 3);
  producer.join();
  EXPECT_EQ(client.get("/v1/hello")->body, "hello");
}

TEST(Client, InterruptEndsABlockedCall) {
  TestServer server;
  Client client = server.client();
  auto blocked = std::async(std::launch::async, [&] { return client.get("/v1/wait"); });
  Responder responder = server.take_waiting();
  client.interrupt();
  EXPECT_EQ(blocked.get().error().code, "INTERRUPTED");
  EXPECT_EQ(client.get("/v1/hello").error().code, "INTERRUPTED");
  responder.respond(Response::no_content());
}

}  // namespace
}  // namespace millrace::http::tests
