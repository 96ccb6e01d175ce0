#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "http/byte_stream.h"
#include "http/problem.h"
#include "tests/http/test_server.h"

namespace millrace::http::tests {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

TEST(Session, AnswersAndKeepsTheConnection) {
  TestServer server;
  RawSocket socket = server.connect();
  for (int i = 0; i < 3; ++i) {
    socket.send(server.get("/v1/hello"));
    auto answer = socket.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->head.starts_with("HTTP/1.1 200 OK\r\n"));
    EXPECT_EQ(answer->body, "hello");
    EXPECT_EQ(answer->field("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(answer->field("Content-Length"), "5");
    EXPECT_EQ(answer->field("Cache-Control"), "no-store");
    EXPECT_EQ(answer->field("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(answer->field("Connection"), "");
    EXPECT_TRUE(answer->field("Date").ends_with(" GMT"));
  }
  EXPECT_EQ(server.stats().connections_opened, 1u);
  EXPECT_EQ(server.stats().requests, 3u);
  EXPECT_EQ(server.stats().responses[2], 3u);
  EXPECT_EQ(server.router().routes()[0]->latency_ns->count(), 3u);
}

TEST(Session, ConnectionCloseAndHttp10End) {
  TestServer server;
  for (std::string request :
       {server.get("/v1/hello", "Connection: close\r\n"), std::string("GET /v1/hello HTTP/1.0\r\n\r\n")}) {
    RawSocket socket = server.connect();
    socket.send(request);
    EXPECT_EQ(socket.read_answer()->field("Connection"), "close");
    EXPECT_EQ(socket.read_all(), "");
    EXPECT_FALSE(socket.was_reset());
  }
}

TEST(Session, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server;
  RawSocket socket = server.connect();
  std::string all;
  for (int i = 0; i < 200; ++i)
    all += i % 3 == 0 ? server.post("/v1/echo", fmt::format("{{\"n\":{}}}", i))
                      : server.get(fmt::format("/v1/things/{}", i));
  // Cut somewhere inside of requests.
  for (size_t at = 0; at < all.size(); at += 1013) socket.send(all.substr(at, 1013));
  for (int i = 0; i < 200; ++i) {
    auto answer = socket.read_answer();
    ASSERT_TRUE(answer);
    if (i % 3 == 0)
      EXPECT_EQ(answer->body, fmt::format("{{\"n\":{}}}", i));
    else
      EXPECT_TRUE(answer->body.starts_with(fmt::format("{}|", i))) << answer->body;
  }
}

TEST(Session, APipelinedRequestWaitsForTheOneBefore) {
  TestServer server;
  RawSocket socket = server.connect();
  std::string burst = server.get("/v1/wait") + server.get("/v1/hello") + server.get("/v1/wait");
  // More than may wait: the rest stays in the kernel until its turn.
  for (int i = 0; i < 2000; ++i) burst += server.get("/v1/hello");
  std::thread sender([&] { socket.send(burst); });
  Responder first = server.take_waiting();
  EXPECT_EQ(server.calls("/v1/hello"), 0);
  first.respond(Response::text(200, "first"));
  EXPECT_EQ(socket.read_answer()->body, "first");
  EXPECT_EQ(socket.read_answer()->body, "hello");
  server.take_waiting().respond(Response::text(200, "third"));
  EXPECT_EQ(socket.read_answer()->body, "third");
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(socket.read_answer()->body, "hello");
  sender.join();
}

TEST(Session, HeadHasTheLengthAndNoBody) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(fmt::format("HEAD /v1/hello HTTP/1.1\r\nHost: {}\r\n\r\n", server.host()) + server.get("/v1/hello"));
  auto answer = socket.read_answer(true);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->field("Content-Length"), "5");
  EXPECT_EQ(socket.read_answer()->body, "hello");
}

TEST(Session, OptionsAndMethodNotAllowedNameWhatIsAllowed) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(fmt::format("OPTIONS /v1/things/x HTTP/1.1\r\nHost: {}\r\n\r\n", server.host()));
  auto answer = socket.read_answer();
  EXPECT_EQ(answer->status, 204);
  EXPECT_EQ(answer->field("Allow"), "GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(answer->field("Content-Length"), "");
  socket.send(server.post("/v1/things/x", "{}"));
  answer = socket.read_answer();
  EXPECT_EQ(answer->status, 405);
  EXPECT_EQ(answer->field("Allow"), "GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(nlohmann::json::parse(answer->body)["code"], "METHOD_NOT_ALLOWED");
}

TEST(Session, ParametersReachTheHandler) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(
      server.get("/v1/things/a%3Ab?limit=7&wait=2s&maxBytes=4KB&deep=true&order=down", "Idempotency-Key: k\r\n"));
  EXPECT_EQ(socket.read_answer()->body, "a:b|7|2000|4096|true|down|k");
  socket.send(server.get("/v1/things/x"));
  EXPECT_EQ(socket.read_answer()->body, "x|10|0|0|false|up|-");
  socket.send(server.post("/v1/things/a%3Ab:polish", ""));
  EXPECT_EQ(socket.read_answer()->body, "polished a:b");
  socket.send(server.get("/v1/things/x?limt=3"));
  auto answer = socket.read_answer();
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(nlohmann::json::parse(answer->body)["code"], "UNKNOWN_PARAMETER");
  EXPECT_EQ(server.rejected(Rejected::kParameter), 1u);
}

TEST(Session, ARequestHasAnId) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/hello", "X-Request-Id: mine-1\r\n"));
  EXPECT_EQ(socket.read_answer()->field("X-Request-Id"), "mine-1");
  socket.send(server.get("/v1/hello", "X-Request-Id: not a token\r\n"));
  std::string first = socket.read_answer()->field("X-Request-Id");
  socket.send(server.get("/v1/hello"));
  std::string second = socket.read_answer()->field("X-Request-Id");
  EXPECT_NE(first, "");
  EXPECT_NE(first, second);
}

TEST(Session, ExpectContinueIsAskedForOrRefusedBeforeTheBody) {
  TestServer server;
  RawSocket socket = server.connect();
  std::string head =
      fmt::format("POST /v1/echo HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n", server.host());
  socket.send(head + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(socket.read_answer()->status, 100);
  socket.send("{}");
  EXPECT_EQ(socket.read_answer()->body, "{}");
  socket.send(head + fmt::format("Content-Length: {}\r\nExpect: 100-continue\r\n\r\n", 1 << 30));
  EXPECT_EQ(socket.read_answer()->status, 413);
  EXPECT_EQ(socket.read_all(), "");
}

TEST(Session, CorsIsForConfiguredOriginsOnly) {
  Options options = TestServer::small_options();
  options.allowed_origins = {"https://console.example"};
  TestServer server(options);
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/hello", "Origin: https://console.example\r\n"));
  auto answer = socket.read_answer();
  EXPECT_EQ(answer->field("Access-Control-Allow-Origin"), "https://console.example");
  EXPECT_EQ(answer->field("Vary"), "Origin");
  socket.send(
      fmt::format("OPTIONS /v1/echo HTTP/1.1\r\nHost: {}\r\nOrigin: https://console.example\r\n"
                  "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n\r\n",
                  server.host()));
  answer = socket.read_answer();
  EXPECT_EQ(answer->field("Access-Control-Allow-Methods"), "POST, OPTIONS");
  EXPECT_EQ(answer->field("Access-Control-Allow-Headers"), "content-type");
  socket.send(server.get("/v1/hello",
                         "Origin: "
                         "http://" +
                             server.host() + "\r\n"));
  answer = socket.read_answer();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->field("Access-Control-Allow-Origin"), "");
}

TEST(Session, AHandlersFieldCannotBreakOut) {
  TestServer server(TestServer::small_options(), [](Router& router) {
    router.add({.path = "/v1/inject",
                .operation_id = "inject",
                .answers = {{200, "x"}},
                .handler = answer_now([](Request&) -> Result<Response> {
                  Response response = Response::text(200, "x");
                  response.headers.add("X-A", "a\r\nX-B: b");
                  return response;
                })});
  });
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/inject"));
  auto answer = socket.read_answer();
  EXPECT_EQ(answer->field("X-B"), "");
  EXPECT_EQ(answer->field("X-A"), "a  X-B: b");
}

TEST(Session, AClientThatClosedItsSideStillGetsItsAnswer) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/wait") + server.get("/v1/hello"));
  socket.shutdown_write();
  std::promise<CancelReason> cancelled;
  Responder responder = server.take_waiting();
  responder.on_cancel([&](CancelReason reason) { cancelled.set_value(reason); });
  EXPECT_EQ(cancelled.get_future().get(), CancelReason::kClientGone);
  responder.respond(Response::text(200, "late"));
  EXPECT_EQ(socket.read_answer()->body, "late");
  EXPECT_EQ(socket.read_answer()->body, "hello");
  EXPECT_EQ(socket.read_all(), "");
}

TEST(Responder, AnswersFromAnotherThread) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/wait"));
  server.take_waiting().respond(Response::json(201, "{}"));
  EXPECT_EQ(socket.read_answer()->status, 201);
}

TEST(Responder, ManyAnswersFromManyThreads) {
  Options options = TestServer::small_options();
  options.io_threads = 2;
  TestServer server(options);
  constexpr int kClients = 8, kRequests = 200;
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c)
    clients.emplace_back([&] {
      Client client = server.client();
      for (int i = 0; i < kRequests; ++i) {
        auto answer = client.get("/v1/wait");
        ASSERT_TRUE(answer) << to_string(answer.error());
        ASSERT_EQ(answer->body, "done");
      }
    });
  std::vector<std::thread> workers;
  for (int w = 0; w < 2; ++w)
    workers.emplace_back([&] {
      for (int i = 0; i < kClients * kRequests / 2; ++i) server.take_waiting().respond(Response::text(200, "done"));
    });
  for (auto& thread : clients) thread.join();
  for (auto& thread : workers) thread.join();
  eventually([&] { return server.stats().in_flight == 0; });
}

TEST(Responder, DroppedWithoutAnAnswerIs500) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/wait"));
  { Responder dropped = server.take_waiting(); }
  auto answer = socket.read_answer();
  EXPECT_EQ(answer->status, 500);
  EXPECT_EQ(nlohmann::json::parse(answer->body)["code"], "NO_ANSWER");
  EXPECT_EQ(nlohmann::json::parse(answer->body)["retry"], "unknown");
}

TEST(Responder, AThrowingHandlerIs500) {
  TestServer server(TestServer::small_options(), [](Router& router) {
    router.add(
        {.path = "/v1/throw", .operation_id = "throw", .answers = {{200, "x"}}, .handler = [](Request, Responder) {
           throw std::runtime_error("thrown by a test");
         }});
  });
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/throw") + server.get("/v1/hello"));
  auto answer = socket.read_answer();
  EXPECT_EQ(answer->status, 500);
  EXPECT_EQ(answer->body.find("thrown by a test"), std::string::npos) << "not the client's business";
  EXPECT_EQ(socket.read_answer()->body, "hello");
}

TEST(Responder, OnlyTheFirstAnswerCounts) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/wait"));
  Responder responder = server.take_waiting();
  EXPECT_FALSE(responder.finished());
  EXPECT_TRUE(responder.try_respond(Response::text(200, "first")));
  EXPECT_FALSE(responder.try_respond(Response::text(200, "second")));
  EXPECT_TRUE(responder.finished());
  EXPECT_EQ(socket.read_answer()->body, "first");
  EXPECT_DEATH(responder.respond(Response::text(200, "third")), "answered twice");
}

TEST(Responder, ErrorsBecomeProblems) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/wait"));
  server.take_waiting().fail({ErrorKind::kUnavailable, "STARTING", "the node is starting"});
  auto answer = socket.read_answer();
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->field("Retry-After"), "1");
  EXPECT_EQ(nlohmann::json::parse(answer->body)["code"], "STARTING");
}

TEST(Responder, TellsWhenTheClientHasGone) {
  TestServer server;
  for (bool reset : {false, true}) {
    RawSocket socket = server.connect();
    socket.send(server.get("/v1/wait"));
    Responder responder = server.take_waiting();
    std::promise<CancelReason> cancelled;
    responder.on_cancel([&](CancelReason reason) { cancelled.set_value(reason); });
    if (reset)
      socket.abort();
    else
      socket.close();
    EXPECT_EQ(cancelled.get_future().get(), CancelReason::kClientGone);
    // Too late to register: told at once.
    std::promise<CancelReason> again;
    responder.on_cancel([&](CancelReason reason) { again.set_value(reason); });
    EXPECT_EQ(again.get_future().get(), CancelReason::kClientGone);
    responder.respond(Response::no_content());
  }
  eventually([&] { return server.stats().connections() == 0 && server.stats().in_flight == 0; });
}

TEST(Responder, TimersRunUnlessThereIsAnAnswerBefore) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/wait"));
  Responder responder = server.take_waiting();
  responder.after(std::chrono::hours(1), [] { FAIL() << "not in this test"; });
  responder.after(1ms, [responder] { responder.try_respond(Response::text(200, "timed out")); });
  EXPECT_EQ(socket.read_answer()->body, "timed out");

  socket.send(server.get("/v1/wait"));
  auto kept = std::make_shared<int>(0);
  std::weak_ptr<int> watched = kept;
  {
    Responder waiting = server.take_waiting();
    waiting.after(std::chrono::hours(1), [waiting, kept] {});
    waiting.on_cancel([waiting, kept](CancelReason) {});
    kept.reset();
    waiting.respond(Response::text(200, "answered"));
  }
  EXPECT_EQ(socket.read_answer()->body, "answered");
  eventually([&] { return watched.expired(); });
}

TEST(Responder, PostRunsOnTheIoThread) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/wait"));
  Responder responder = server.take_waiting();
  std::promise<std::string> name;
  responder.post([&] {
    char text[16] = "";
    ::pthread_getname_np(::pthread_self(), text, sizeof text);
    name.set_value(text);
  });
  EXPECT_EQ(name.get_future().get(), "io-0");
  responder.respond(Response::no_content());
}

TEST(Responder, OutlivesTheServer) {
  std::optional<Responder> first, second;
  std::optional<ByteStream> stream;
  {
    TestServer server;
    RawSocket one = server.connect(), two = server.connect(), three = server.connect();
    one.send(server.get("/v1/wait"));
    first = server.take_waiting();
    two.send(server.get("/v1/wait"));
    second = server.take_waiting();
    three.send(server.get("/v1/stream"));
    stream = server.take_waiting().start_stream(Response::text(200, ""), {});
    EXPECT_EQ(three.read_answer(true)->status, 200);
  }
  EXPECT_TRUE(first->finished());
  first->post([] { FAIL(); });
  first->after(0ms, [] { FAIL(); });
  first->respond(Response::no_content());
  second.reset();
  EXPECT_FALSE(stream->write("x"));
}

TEST(Session, LargeAnswersReachSlowReaders) {
  TestServer server;
  RawSocket socket = server.connect();
  int small = 64 * 1024;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  socket.send(server.get("/v1/bytes?count=8388608") + server.get("/v1/hello"));
  auto answer = socket.read_answer();
  EXPECT_EQ(answer->body.size(), 8388608u);
  EXPECT_EQ(answer->body.find_first_not_of('x'), std::string::npos);
  EXPECT_EQ(socket.read_answer()->body, "hello");
}

TEST(Session, HealthSeesTheLoops) {
  TestServer server;
  auto loops = server.health().check();
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].name, "io-0");
  eventually([&] { return server.health().check()[0].beats > loops[0].beats; });
  server.destroy();
  EXPECT_TRUE(server.health().check().empty());
}

}  // namespace
}  // namespace millrace::http::tests
