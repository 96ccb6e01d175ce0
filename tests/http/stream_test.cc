#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "http/sse.h"
#include "tests/http/test_server.h"

namespace millrace::http::tests {
namespace {

using namespace std::chrono_literals;

// The payload of chunks that are all there.
std::string unchunk(std::string_view coded) {
  std::string out;
  while (!coded.empty()) {
    size_t size = std::strtoul(std::string(coded).c_str(), nullptr, 16);
    coded.remove_prefix(coded.find("\r\n") + 2);
    out.append(coded.substr(0, size));
    coded.remove_prefix(size + 2);
    if (size == 0) break;
  }
  return out;
}

EventOptions quiet() {
  EventOptions options;
  options.heartbeat = 0ms;
  return options;
}

TEST(EventStream, SendsEventsAsTheStandardHasThem) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/stream", "Last-Event-ID: 0:12,1:9\r\n"));
  {
    EventStream stream = EventStream::start(server.take_waiting(), quiet());
    EXPECT_TRUE(stream.send("record", "0:13,1:9", "{\"a\":1}"));
    EXPECT_TRUE(stream.send("", "", "two\nlines\r\nthree"));
    EXPECT_TRUE(stream.send("bad\nname", "bad\nid", ""));
    EXPECT_TRUE(stream.comment("note"));
  }
  auto answer = socket.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->field("Content-Type"), "text/event-stream");
  EXPECT_EQ(answer->field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(unchunk(answer->body),
            "retry: 1000\n\n"
            "event: record\nid: 0:13,1:9\ndata: {\"a\":1}\n\n"
            "data: two\ndata: lines\ndata: three\n\n"
            "event: bad name\nid: bad id\ndata: \n\n"
            ": note\n\n");
  // The connection goes on.
  socket.send(server.get("/v1/hello"));
  EXPECT_EQ(socket.read_answer()->body, "hello");
  EXPECT_EQ(server.stats().streams, 0);
}

TEST(EventStream, Http10StreamsUntilTheEnd) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send("GET /v1/stream HTTP/1.0\r\n\r\n");
  EventStream stream = EventStream::start(server.take_waiting(), quiet());
  stream.send("", "1", "x");
  stream.close();
  std::string all = socket.read_all();
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  EXPECT_TRUE(all.ends_with("retry: 1000\n\nid: 1\ndata: x\n\n")) << all;
}

TEST(EventStream, HeadOfAStreamHasNoBody) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(fmt::format("HEAD /v1/stream HTTP/1.1\r\nHost: {}\r\n\r\n", server.host()));
  EventStream stream = EventStream::start(server.take_waiting(), quiet());
  EXPECT_EQ(socket.read_answer(true)->status, 200);
  eventually([&] { return stream.closed(); });
  socket.send(server.get("/v1/hello"));
  EXPECT_EQ(socket.read_answer()->body, "hello");
}

TEST(EventStream, HeartbeatsWhenNothingElseIsSent) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/stream"));
  EventOptions options;
  options.heartbeat = 5ms;
  EventStream stream = EventStream::start(server.take_waiting(), options);
  socket.read_until("retry: 1000\n\n");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(socket.read_until(": \n\n").ends_with(": \n\n"));
}

TEST(ByteStream, RefusesWhatASlowClientDoesNotTakeAndTellsWhenItDoes) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/stream"));
  ByteStream stream = server.take_waiting().start_stream(Response::text(200, ""), {.max_queued_bytes = 10'000});
  std::atomic<int> writable{0};
  std::string piece(1000, 'x');
  size_t accepted = 0;
  stream.on_writable([&] { ++writable; });
  // The kernel takes some megabytes; then the queue fills and stays bounded.
  auto fill = [&] {
    for (int refused = 0; refused < 1000;) {
      if (stream.write(piece))
        ++accepted;
      else
        ++refused;
      ASSERT_LE(stream.queued_bytes(), 11'000u);
    }
  };
  eventually([&] {
    fill();
    return stream.queued_bytes() >= 9'000u;
  });
  // A thing larger than the queue waits until the queue is empty. That may be so when the kernel takes some more after
  // all, but then the thing itself is in the way of the next one.
  while (stream.write(std::string(20'000, 'y'))) continue;
  std::thread reader([&] {
    std::string got;
    while (got.find("the end") == std::string::npos) got += socket.read_until("\r\n");
  });
  eventually([&] { return writable > 0; });
  eventually([&] { return stream.write(std::string(20'000, 'y')); });
  eventually([&] { return stream.write("the end"); });
  reader.join();
}

TEST(ByteStream, EveryByteArrivesInOrder) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/stream"));
  ByteStream stream = server.take_waiting().start_stream(Response::text(200, ""), {.max_queued_bytes = 5'000});
  constexpr int kLines = 100'000;
  std::thread producer([stream] {
    for (int i = 0; i < kLines; ++i)
      while (!stream.write(fmt::format("{}\n", i))) std::this_thread::yield();
    stream.close();
  });
  auto answer = socket.read_until("\r\n0\r\n\r\n");
  producer.join();
  std::string body = unchunk(answer.substr(answer.find("\r\n\r\n") + 4));
  std::string expected;
  for (int i = 0; i < kLines; ++i) expected += fmt::format("{}\n", i);
  EXPECT_TRUE(body == expected) << body.size() << " bytes of " << expected.size();
}

// The way a log reader works: write until refused, go on when writable.
TEST(ByteStream, OnWritableDrivesAProducer) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/stream"));
  ByteStream stream = server.take_waiting().start_stream(Response::text(200, ""), {.max_queued_bytes = 20'000});
  auto left = std::make_shared<int>(5'000);
  auto produce = std::make_shared<std::function<void()>>();
  *produce = [stream, left] {
    while (*left > 0 && stream.write(std::string(1000, 'x'))) --*left;
    if (*left == 0) stream.close();
  };
  stream.on_writable(*produce);
  stream.post(*produce);
  *produce = nullptr;
  auto answer = socket.read_answer();
  EXPECT_EQ(unchunk(answer->body).size(), 5'000'000u);
}

TEST(ByteStream, TellsWhenTheClientHasGone) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/stream"));
  ByteStream stream = server.take_waiting().start_stream(Response::text(200, ""), {});
  socket.read_until("\r\n\r\n");
  std::promise<CancelReason> closed, again;
  stream.on_close([&](CancelReason reason) { closed.set_value(reason); });
  socket.close();
  EXPECT_EQ(closed.get_future().get(), CancelReason::kClientGone);
  EXPECT_TRUE(stream.closed());
  EXPECT_FALSE(stream.write("x"));
  stream.on_close([&](CancelReason reason) { again.set_value(reason); });
  EXPECT_EQ(again.get_future().get(), CancelReason::kClientGone);
  eventually([&] { return server.stats().streams == 0; });
}

TEST(ByteStream, AClientThatTakesNothingIsCutOff) {
  Options options = TestServer::small_options();
  options.write_timeout = 100ms;
  TestServer server(options);
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/stream"));
  ByteStream stream = server.take_waiting().start_stream(Response::text(200, ""), {});
  std::promise<CancelReason> closed;
  stream.on_close([&](CancelReason reason) { closed.set_value(reason); });
  std::string piece(100'000, 'x');
  while (!stream.closed()) stream.write(piece);
  EXPECT_EQ(closed.get_future().get(), CancelReason::kClientGone);
}

TEST(ByteStream, CallbacksAreDroppedAtTheEndWithWhatTheyHold) {
  TestServer server;
  auto held = std::make_shared<int>(0);
  std::weak_ptr<int> watched = held;
  RawSocket socket = server.connect();
  socket.send(server.get("/v1/stream"));
  {
    ByteStream stream = server.take_waiting().start_stream(Response::text(200, ""), {});
    stream.on_writable([stream, held] {});
    stream.on_close([stream, held](CancelReason) {});
    stream.after(std::chrono::hours(1), [stream, held] {});
    held.reset();
  }
  socket.read_until("\r\n\r\n");
  EXPECT_FALSE(watched.expired());
  socket.close();
  eventually([&] { return watched.expired(); });
}

TEST(ByteStream, ManyProducersManyClients) {
  Options options = TestServer::small_options();
  options.io_threads = 2;
  TestServer server(options);
  constexpr int kStreams = 16, kEvents = 500;
  std::vector<std::thread> clients;
  for (int s = 0; s < kStreams; ++s)
    clients.emplace_back([&] {
      Client client = server.client();
      int seen = 0;
      auto answer = client.stream_events("/v1/stream", {}, [&](const Client::Event& event) {
        EXPECT_EQ(event.id, std::to_string(seen));
        ++seen;
        return true;
      });
      ASSERT_TRUE(answer) << to_string(answer.error());
      EXPECT_EQ(seen, kEvents);
    });
  std::vector<EventStream> streams;
  for (int s = 0; s < kStreams; ++s) streams.push_back(EventStream::start(server.take_waiting()));
  std::vector<std::thread> producers;
  for (int p = 0; p < 4; ++p)
    producers.emplace_back([&, p] {
      for (int i = 0; i < kEvents; ++i)
        for (size_t s = static_cast<size_t>(p); s < kStreams; s += 4)
          while (!streams[s].send("n", std::to_string(i), "data")) std::this_thread::yield();
    });
  for (auto& thread : producers) thread.join();
  streams.clear();
  for (auto& thread : clients) thread.join();
}

}  // namespace
}  // namespace millrace::http::tests
