#include "tests/http/test_server.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace millrace::http::tests {

Options TestServer::small_options() {
  Options options;
  options.listen = {"127.0.0.1:0"};
  options.io_threads = 1;
  options.request_deadline = std::chrono::minutes(5);
  options.idle_timeout = std::chrono::minutes(5);
  options.write_timeout = std::chrono::minutes(5);
  options.linger_timeout = std::chrono::seconds(30);
  return options;
}

TestServer::TestServer(Options options, std::function<void(Router&)> more_routes)
    : router_(std::make_shared<Router>()) {
  add_routes(*router_);
  if (more_routes) more_routes(*router_);
  router_->add_openapi("Test", "1.2.3", "For tests.");
  auto server = Server::listen(std::move(options), router_, health_);
  if (!server) throw std::runtime_error(to_string(server.error()));
  server_ = std::move(*server);
  server_->start();
}

TestServer::~TestServer() {
  server_.reset();
  MutexLock lock(mutex_);
  waiting_.clear();
}

void TestServer::count(const std::string& path) {
  MutexLock lock(mutex_);
  ++calls_[path];
}

int TestServer::calls(const std::string& path) const {
  MutexLock lock(mutex_);
  auto found = calls_.find(path);
  return found == calls_.end() ? 0 : found->second;
}

void TestServer::add_routes(Router& router) {
  auto keep = [this](Request, Responder responder) {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(responder));
    changed_.notify_all();
  };
  router.add_schema("Thing", R"({"type":"object","properties":{"thing":{"type":"string"}}})");
  router.add({.path = "/v1/hello",
              .operation_id = "hello",
              .summary = "Says hello",
              .answers = {{200, "It said hello.", R"({"type":"string"})", "text/plain"}},
              .handler = answer_now([this](Request&) -> Result<Response> {
                count("/v1/hello");
                return Response::text(200, "hello");
              })});
  router.add({.method = Method::kPost,
              .path = "/v1/echo",
              .operation_id = "echo",
              .summary = "Echoes the body",
              .body = BodyRule::kOptional,
              .request_schema = R"({"type":"object"})",
              .answers = {{200, "The body.", R"({"type":"object"})"}},
              .handler = answer_now([this](Request& request) -> Result<Response> {
                count("/v1/echo");
                return Response::json(200, std::move(request.body));
              })});
  router.add({.path = "/v1/things/{thing}",
              .operation_id = "getThing",
              .tag = "things",
              .summary = "Reads a thing",
              .description = "Longer words.",
              .params = {Param::integer("limit", "How many.").range(1, 100).otherwise("10"),
                         Param::string("thing", "Which.").range(1, 249),
                         Param::duration("wait", "How long.").range(0, 60'000).otherwise("0s"),
                         Param::size("maxBytes", "How much."), Param::boolean("deep", "Whether.").otherwise("false"),
                         Param::string("order", "Which way.").one_of({"up", "down"}).otherwise("up"),
                         Param::string("Idempotency-Key", "Makes a retry safe.").range(1, 64).in_header()},
              .answers = {{200, "The thing.", R"({"$ref":"#/components/schemas/Thing"})"}},
              .problems = {{ErrorKind::kNotFound, "THING_NOT_FOUND", "there is no such thing"},
                           {ErrorKind::kConflict, "THING_BUSY", "somebody uses it"}},
              .handler = answer_now([](Request& request) -> Result<Response> {
                const Params& p = request.params;
                return Response::json(
                    200,
                    fmt::format("{}|{}|{}|{}|{}|{}|{}", p.string("thing"), p.integer("limit"),
                                p.duration("wait").count(), p.has("maxBytes") ? p.size("maxBytes") : 0,
                                p.boolean("deep"), p.string("order"), p.find_string("Idempotency-Key").value_or("-")));
              })});
  router.add({.method = Method::kDelete,
              .path = "/v1/things/{thing}",
              .operation_id = "deleteThing",
              .tag = "things",
              .summary = "Deletes a thing",
              .params = {Param::string("thing", "Which.")},
              .answers = {{204, "Gone."}},
              .problems = {{ErrorKind::kNotFound, "THING_NOT_FOUND", "there is no such thing"}},
              .handler = answer_now([](Request& request) -> Result<Response> {
                if (request.params.string("thing") == "none")
                  return fail(ErrorKind::kNotFound, "THING_NOT_FOUND", "there is no thing 'none'");
                return Response::no_content();
              })});
  router.add({.method = Method::kPost,
              .path = "/v1/things/{thing}:polish",
              .operation_id = "polishThing",
              .tag = "things",
              .summary = "Polishes a thing",
              .params = {Param::string("thing", "Which.")},
              .answers = {{200, "It shines.", R"({"type":"string"})", "text/plain"}},
              .handler = answer_now([](Request& request) -> Result<Response> {
                return Response::text(200, "polished " + std::string(request.params.string("thing")));
              })});
  router.add({.path = "/v1/trap",
              .operation_id = "trap",
              .summary = "Counts",
              .answers = {{204, "Caught."}},
              .handler = answer_now([this](Request&) -> Result<Response> {
                count("/v1/trap");
                return Response::no_content();
              })});
  router.add({.path = "/v1/wait",
              .operation_id = "wait",
              .summary = "Waits for the test",
              .answers = {{200, "It answered."}},
              .handler = keep});
  router.add({.path = "/v1/stream",
              .operation_id = "stream",
              .summary = "Streams what the test sends",
              .answers = {{200, "Events.", R"({"type":"string"})", "text/event-stream"}},
              .handler = keep});
  router.add({.path = "/v1/bytes",
              .operation_id = "bytes",
              .summary = "Sends bytes",
              .params = {Param::integer("count", "How many.").range(0, 1 << 28).required()},
              .answers = {{200, "Bytes.", R"({"type":"string"})", "text/plain"}},
              .handler = answer_now([](Request& request) -> Result<Response> {
                return Response::text(200, std::string(static_cast<size_t>(request.params.integer("count")), 'x'));
              })});
}

Client TestServer::client() const {
  auto made = Client::create(server().urls().at(0));
  if (!made) throw std::runtime_error(to_string(made.error()));
  return std::move(*made);
}

std::string TestServer::get(const std::string& target, const std::string& fields) const {
  return fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n{}\r\n", target, host(), fields);
}

std::string TestServer::post(const std::string& target, const std::string& body, const std::string& fields) const {
  return fmt::format("POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}",
                     target, host(), body.size(), fields, body);
}

Responder TestServer::take_waiting() {
  MutexLock lock(mutex_);
  while (waiting_.empty()) changed_.wait(mutex_);
  Responder responder = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  return responder;
}

void eventually(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace millrace::http::tests
