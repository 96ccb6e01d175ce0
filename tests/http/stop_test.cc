#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "http/sse.h"
#include "tests/http/test_server.h"
#include "tests/support/temp_dir.h"

namespace millrace::http::tests {
namespace {

using namespace std::chrono_literals;

class Stop : public ::testing::Test {
 protected:
  // Begins a stop and returns when the server has begun to drain, as /v1/wait's cancellation shows.
  std::future<void> stop(std::chrono::milliseconds drain) {
    server_.server().stop(drain, [this] {
      ++drained_;
      done_.set_value();
    });
    return done_.get_future();
  }

  static Options options() {
    Options options = TestServer::small_options();
    options.io_threads = 2;
    return options;
  }

  std::atomic<int> drained_{0};
  std::promise<void> done_;
  TestServer server_{options()};
};

TEST_F(Stop, IdleConnectionsEndAtOnce) {
  std::vector<RawSocket> idle;
  for (int i = 0; i < 10; ++i) {
    idle.push_back(server_.connect());
    idle.back().send(server_.get("/v1/hello"));
    EXPECT_EQ(idle.back().read_answer()->status, 200);
  }
  stop(1h).get();
  for (auto& socket : idle) EXPECT_EQ(socket.read_all(), "");
  EXPECT_THROW(server_.connect(), std::system_error);
  server_.server().stop(0ms, [] { FAIL() << "only the first is called back"; });
  server_.destroy();
  EXPECT_EQ(drained_, 1);
}

TEST_F(Stop, RequestsInFlightAreAnswered) {
  RawSocket handled = server_.connect(), half_sent = server_.connect();
  handled.send(server_.get("/v1/wait") + server_.get("/v1/trap"));
  Responder responder = server_.take_waiting();
  std::promise<CancelReason> told;
  responder.on_cancel([&](CancelReason reason) { told.set_value(reason); });
  std::string request = server_.post("/v1/echo", "{}");
  half_sent.send(request.substr(0, 30));
  eventually([&] { return server_.stats().bytes_in >= server_.get("/v1/wait").size() + 30; });

  auto done = stop(1h);
  EXPECT_EQ(told.get_future().get(), CancelReason::kShutdown);
  half_sent.send(request.substr(30));
  auto answer = half_sent.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "{}");
  EXPECT_EQ(answer->field("Connection"), "close");
  EXPECT_EQ(done.wait_for(0s), std::future_status::timeout);
  responder.respond(Response::text(200, "last"));
  answer = handled.read_answer();
  EXPECT_EQ(answer->body, "last");
  EXPECT_EQ(answer->field("Connection"), "close");
  handled.shutdown_write();
  EXPECT_EQ(handled.read_all(), "");
  half_sent.close();
  done.get();
  EXPECT_EQ(server_.calls("/v1/trap"), 0) << "what was pipelined behind is not begun";
}

TEST_F(Stop, StreamsEndInOrder) {
  RawSocket socket = server_.connect();
  socket.send(server_.get("/v1/stream"));
  EventStream stream = EventStream::start(server_.take_waiting());
  stream.send("", "7", "x");
  socket.read_until("data: x\n\n");
  std::promise<CancelReason> told;
  stream.on_close([&](CancelReason reason) { told.set_value(reason); });
  auto done = stop(1h);
  EXPECT_EQ(told.get_future().get(), CancelReason::kShutdown);
  std::string rest = socket.read_all();
  EXPECT_NE(rest.find(": server is stopping\n\n"), std::string::npos);
  EXPECT_TRUE(rest.ends_with("0\r\n\r\n")) << rest;
  EXPECT_FALSE(stream.send("", "8", "y"));
  socket.close();
  done.get();
}

TEST_F(Stop, WhatDoesNotEndIsCutOff) {
  RawSocket never_answered = server_.connect(), half_sent = server_.connect();
  never_answered.send(server_.get("/v1/wait"));
  Responder responder = server_.take_waiting();
  half_sent.send("GET /v1/");
  auto done = stop(20ms);
  done.get();
  EXPECT_EQ(never_answered.read_all(), "");
  EXPECT_EQ(half_sent.read_all(), "");
  EXPECT_TRUE(responder.finished());
  responder.respond(Response::no_content());
}

TEST_F(Stop, UnderLoadNothingIsHalfAnswered) {
  std::atomic<int> answered{0}, lost{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&] {
      Client client = server_.client();
      for (;;) {
        auto answer = client.post("/v1/echo", "{\"n\":1}");
        if (!answer) {
          ++lost;
          // A connection may end between two requests; but no answer may be cut.
          EXPECT_TRUE(answer.error().code == "CONNECT_FAILED" ||
                      answer.error().message.find("before an answer") != std::string::npos ||
                      answer.error().message.find("reset") != std::string::npos)
              << to_string(answer.error());
          return;
        }
        EXPECT_EQ(answer->body, "{\"n\":1}");
        ++answered;
      }
    });
  eventually([&] { return answered > 200; });
  stop(1h).get();
  for (auto& thread : clients) thread.join();
  EXPECT_EQ(lost, 4);
}

TEST(Server, DestroyedWithoutAStopOrStart) {
  TestServer running;
  RawSocket socket = running.connect();
  socket.send(running.get("/v1/wait"));
  Responder responder = running.take_waiting();
  running.destroy();
  EXPECT_EQ(socket.read_all(), "");
  responder.respond(Response::no_content());

  Health health(SystemClock::instance());
  auto never_started = Server::listen(TestServer::small_options(), std::make_shared<Router>(), health);
  ASSERT_TRUE(never_started);
  (*never_started)->stop_and_wait(0ms);
}

class Listen : public ::testing::Test {
 protected:
  std::string error_of(Options options) {
    auto server = Server::listen(std::move(options), std::make_shared<Router>(), health_);
    return server ? "" : to_string(server.error());
  }
  static Options on(std::vector<std::string> addresses, std::filesystem::path socket = {}) {
    Options options;
    options.listen = std::move(addresses);
    options.unix_socket = std::move(socket);
    return options;
  }
  Health health_{SystemClock::instance()};
  millrace::tests::TempDir dir_;
};

TEST_F(Listen, ATakenPortIsNamed) {
  TestServer server;
  std::string error = error_of(on({server.host()}));
  EXPECT_TRUE(error.starts_with("ADDRESS_IN_USE: ")) << error;
  EXPECT_NE(error.find(server.host()), std::string::npos);
  EXPECT_NE(error.find("http.listen"), std::string::npos);
}

TEST_F(Listen, OnlyLoopbackWithoutAuthentication) {
  for (const char* address : {"0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.org:80"}) {
    std::string error = error_of(on({address}));
    EXPECT_TRUE(error.starts_with("UNAUTHENTICATED_LISTENER: ")) << address << ": " << error;
    EXPECT_NE(error.find("authentication"), std::string::npos);
  }
  Options options = on({"0.0.0.0:0"});
  options.authenticated = true;
  EXPECT_EQ(error_of(options), "");
}

TEST_F(Listen, MalformedAddresses) {
  for (const char* address : {"", "127.0.0.1", ":80", "127.0.0.1:port", "127.0.0.1:99999", "127.0.0.1:80:80"})
    EXPECT_TRUE(error_of(on({address})).starts_with("INVALID_LISTEN_ADDRESS: ")) << address;
  EXPECT_TRUE(error_of(on({})).starts_with("INVALID_LISTEN_ADDRESS: "));
}

TEST_F(Listen, LocalhostIsBothAddressesOnOnePort) {
  Options options = TestServer::small_options();
  options.listen = {"localhost:0"};
  TestServer server(options);
  const auto& urls = server.server().urls();
  ASSERT_GE(urls.size(), 1u);
  for (const std::string& url : urls) {
    EXPECT_TRUE(url.ends_with(":" + std::to_string(server.server().port()))) << url;
    auto client = Client::create(url);
    EXPECT_EQ(client->get("/v1/hello")->body, "hello") << url;
  }
}

TEST_F(Listen, SeveralListenersAndTheSocketsMode) {
  Options options = TestServer::small_options();
  options.listen = {"127.0.0.1:0", "127.0.0.1:0"};
  options.unix_socket = dir_.path() / "http.sock";
  {
    TestServer server(options);
    ASSERT_EQ(server.server().urls().size(), 3u);
    for (const std::string& url : server.server().urls())
      EXPECT_EQ(Client::create(url)->get("/v1/hello")->body, "hello") << url;
    struct stat file {};
    ASSERT_EQ(::stat(options.unix_socket.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777, 0660u);
    std::string error = error_of(on({}, options.unix_socket));
    EXPECT_TRUE(error.starts_with("SOCKET_IN_USE: ")) << error;
  }
  EXPECT_FALSE(std::filesystem::exists(options.unix_socket)) << "removed at the stop";
}

TEST_F(Listen, AStaleSocketIsReplacedAndOtherFilesAreNot) {
  auto path = dir_.path() / "http.sock";
  {
    // As a killed process leaves it: bound once, nobody behind it.
    Options options = TestServer::small_options();
    options.unix_socket = path;
    TestServer server(options);
    std::filesystem::create_hard_link(path, dir_.path() / "left.sock");
  }
  std::filesystem::rename(dir_.path() / "left.sock", path);
  EXPECT_EQ(error_of(on({}, path)), "");

  auto other = dir_.path() / "file";
  std::fclose(std::fopen(other.c_str(), "w"));
  EXPECT_TRUE(error_of(on({}, other)).starts_with("SOCKET_UNUSABLE: "));
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_TRUE(error_of(on({}, dir_.path() / "no" / "folder")).starts_with("SOCKET_UNUSABLE: "));
  EXPECT_TRUE(error_of(on({}, dir_.path() / std::string(120, 'x'))).starts_with("SOCKET_UNUSABLE: "));
}

}  // namespace
}  // namespace millrace::http::tests
