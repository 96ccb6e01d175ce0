#include "tests/cli/fake_node.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "http/problem.h"

namespace millrace::cli::tests {

using http::answer_now;
using http::Method;
using http::Param;
using http::Request;
using http::Response;
using nlohmann::json;

namespace {

Param topic_param() {
  return Param::string("topic", "Which.");
}

json envelope_of(const json& given) {
  if (given.is_string()) return {{"type", "STRING"}, {"data", given}};
  return given;
}

}  // namespace

FakeNode::FakeNode() {
  http::Options options;
  options.listen = {"127.0.0.1:0"};
  options.io_threads = 1;
  auto router = std::make_shared<http::Router>();
  add_topic_routes(*router);
  add_record_routes(*router);
  add_node_routes(*router);
  auto server = http::Server::listen(std::move(options), router, health_);
  if (!server) throw std::runtime_error(to_string(server.error()));
  server_ = std::move(*server);
  server_->start();
}

FakeNode::~FakeNode() {
  {
    MutexLock lock(mutex_);
    open_streams_.clear();
  }
  server_.reset();
}

void FakeNode::add_topic(const std::string& name, size_t partitions) {
  MutexLock lock(mutex_);
  topics_[name].partitions.resize(partitions);
}

void FakeNode::add_record(const std::string& topic, size_t partition, const std::string& value,
                          const std::string& key) {
  MutexLock lock(mutex_);
  auto& records = topics_[topic].partitions.at(partition);
  records.push_back(fmt::format(R"({{"partition":{},"offset":"{}","timestamp":"2026-05-01T12:00:00.{:03}Z","key":{},)"
                                R"("value":{},"headers":[{{"name":"h","value":{{"type":"STRING","data":"x"}}}}]}})",
                                partition, records.size(), records.size(), key, value));
}

void FakeNode::set_ready(bool ready) {
  MutexLock lock(mutex_);
  ready_ = ready;
}

void FakeNode::refuse_appends(int times, Error with) {
  MutexLock lock(mutex_);
  for (int i = 0; i < times; ++i) refusals_.push_back(with);
}

std::vector<FakeNode::Append> FakeNode::appends() const {
  MutexLock lock(mutex_);
  return appends_;
}

std::vector<std::string> FakeNode::values(const std::string& topic) const {
  MutexLock lock(mutex_);
  std::vector<std::string> all;
  auto found = topics_.find(topic);
  if (found == topics_.end()) return all;
  for (const auto& partition : found->second.partitions)
    for (const std::string& record : partition) all.push_back(json::parse(record)["value"]["data"]);
  return all;
}

std::vector<std::string> FakeNode::topic_bodies() const {
  MutexLock lock(mutex_);
  return topic_bodies_;
}

void FakeNode::script_stream(std::vector<Event> events) {
  MutexLock lock(mutex_);
  scripts_.push_back({std::move(events), false});
}

void FakeNode::script_open_stream(std::vector<Event> events) {
  MutexLock lock(mutex_);
  scripts_.push_back({std::move(events), true});
}

std::vector<FakeNode::StreamRequest> FakeNode::stream_requests() const {
  MutexLock lock(mutex_);
  return stream_requests_;
}

void FakeNode::wait_for_stream_requests(size_t count) {
  MutexLock lock(mutex_);
  while (stream_requests_.size() < count) changed_.wait(mutex_);
}

std::string FakeNode::record_event(size_t partition, size_t offset, const std::string& text) {
  return fmt::format(R"({{"partition":{},"offset":"{}","timestamp":"2026-05-01T12:00:00.000Z","key":null,)"
                     R"("value":{{"type":"STRING","data":"{}"}},"headers":[]}})",
                     partition, offset, text);
}

Result<FakeNode::Topic*> FakeNode::find(std::string_view name) {
  auto found = topics_.find(std::string(name));
  if (found == topics_.end())
    return fail(ErrorKind::kNotFound, "TOPIC_NOT_FOUND", fmt::format("there is no topic '{}'", name));
  return &found->second;
}

std::string FakeNode::topic_json(const std::string& name, const Topic& topic) const {
  return fmt::format(R"({{"name":"{}","id":"i","partitions":{},"configs":{},"createdAt":"2026-05-01T00:00:00Z"}})",
                     name, topic.partitions.size(), topic.configs);
}

void FakeNode::add_topic_routes(http::Router& router) {
  auto add = [&router](Method method, std::string path, std::string id, std::vector<Param> params,
                       std::function<Result<Response>(Request&)> fn) {
    bool body = method == Method::kPost || method == Method::kPatch;
    router.add({.method = method,
                .path = std::move(path),
                .operation_id = std::move(id),
                .summary = "For tests",
                .params = std::move(params),
                .body = body ? http::BodyRule::kRequired : http::BodyRule::kNone,
                .request_schema = body ? R"({"type":"object"})" : "",
                .answers = {{200, "Done."}},
                .handler = answer_now(std::move(fn))});
  };
  add(Method::kGet, "/v1/topics", "list", {Param::integer("limit", "How many."), Param::string("after", "Behind.")},
      [this](Request& request) -> Result<Response> {
        MutexLock lock(mutex_);
        std::string list, next;
        int64_t left = std::min<int64_t>(request.params.integer("limit"), 2);
        auto at = topics_.upper_bound(std::string(request.params.find_string("after").value_or("")));
        for (; at != topics_.end() && left > 0; ++at, --left) {
          list += (list.empty() ? "" : ",") + topic_json(at->first, at->second);
          next = at->first;
        }
        if (at == topics_.end()) next.clear();
        return Response::json(200,
                              "{\"topics\":[" + list + "]" + (next.empty() ? "" : ",\"next\":\"" + next + "\"") + "}");
      });
  add(Method::kPost, "/v1/topics", "create", {}, [this](Request& request) -> Result<Response> {
    MutexLock lock(mutex_);
    topic_bodies_.push_back(request.body);
    auto body = json::parse(request.body);
    std::string name = body["name"];
    if (topics_.contains(name))
      return fail(ErrorKind::kAlreadyExists, "TOPIC_EXISTS", "topic '" + name + "' exists already");
    topics_[name].partitions.resize(body.value("partitions", 1));
    return Response::json(201, topic_json(name, topics_[name]));
  });
  add(Method::kGet, "/v1/topics/{topic}", "show", {topic_param()}, [this](Request& request) -> Result<Response> {
    MutexLock lock(mutex_);
    auto topic = find(request.params.string("topic"));
    if (!topic) return tl::unexpected(topic.error());
    return Response::json(200, topic_json(std::string(request.params.string("topic")), **topic));
  });
  add(Method::kPatch, "/v1/topics/{topic}", "alter", {topic_param()}, [this](Request& request) -> Result<Response> {
    MutexLock lock(mutex_);
    topic_bodies_.push_back(request.body);
    auto topic = find(request.params.string("topic"));
    if (!topic) return tl::unexpected(topic.error());
    if (request.body.find("nonsense") != std::string::npos)
      return fail(ErrorKind::kInvalidArgument, "UNKNOWN_CONFIG", "there is no setting 'nonsense'", "/configs/nonsense");
    return Response::json(200, topic_json(std::string(request.params.string("topic")), **topic));
  });
  add(Method::kDelete, "/v1/topics/{topic}", "remove", {topic_param()}, [this](Request& request) -> Result<Response> {
    MutexLock lock(mutex_);
    auto topic = find(request.params.string("topic"));
    if (!topic) return tl::unexpected(topic.error());
    topics_.erase(std::string(request.params.string("topic")));
    return Response::no_content();
  });
}

void FakeNode::add_record_routes(http::Router& router) {
  router.add(
      {.path = "/v1/topics/{topic}/partitions",
       .operation_id = "partitions",
       .summary = "For tests",
       .params = {topic_param()},
       .answers = {{200, "Done."}},
       .handler = answer_now([this](Request& request) -> Result<Response> {
         MutexLock lock(mutex_);
         auto topic = find(request.params.string("topic"));
         if (!topic) return tl::unexpected(topic.error());
         std::string rows;
         for (size_t i = 0; i < (*topic)->partitions.size(); ++i)
           rows += fmt::format(
               R"({}{{"partition":{},"logStartOffset":"0","highWatermark":"{}","sizeBytes":"9007199254740993"}})",
               i > 0 ? "," : "", i, (*topic)->partitions[i].size());
         return Response::json(200, "{\"partitions\":[" + rows + "]}");
       })});
  router.add({.method = Method::kPost,
              .path = "/v1/topics/{topic}/records",
              .operation_id = "append",
              .summary = "For tests",
              .params = {topic_param(), Param::string("Idempotency-Key", "Key.").in_header()},
              .body = http::BodyRule::kRequired,
              .request_schema = R"({"type":"object"})",
              .answers = {{200, "Done."}},
              .handler = answer_now([this](Request& request) { return append(request); })});
  router.add({.path = "/v1/topics/{topic}/partitions/{partition}/records",
              .operation_id = "read",
              .summary = "For tests",
              .params = {topic_param(), Param::integer("partition", "Which."), Param::integer("offset", "From."),
                         Param::integer("timestamp", "From."), Param::integer("limit", "How many.").otherwise("2"),
                         Param::size("maxBytes", "How much.")},
              .answers = {{200, "Done."}},
              .handler = answer_now([this](Request& request) { return read(request); })});
  router.add({.path = "/v1/topics/{topic}/stream",
              .operation_id = "stream",
              .summary = "For tests",
              .params = {topic_param(), Param::string("from", "From.")},
              .answers = {{200, "Events.", R"({"type":"string"})", "text/event-stream"}},
              .handler = [this](Request request, http::Responder responder) {
                stream(std::move(request), std::move(responder));
              }});
}

void FakeNode::add_node_routes(http::Router& router) {
  auto add = [&router](std::string path, std::string id, std::function<Result<Response>(Request&)> fn) {
    router.add({.path = std::move(path),
                .operation_id = std::move(id),
                .summary = "For tests",
                .answers = {{200, "Done."}},
                .handler = answer_now(std::move(fn))});
  };
  add("/v1/node", "node", [](Request&) -> Result<Response> {
    return Response::json(200, R"({"version":"0.1.0","log":{"bytes":18446744073709551616},"listen":["a","b"]})");
  });
  add("/v1/node/ready", "ready", [this](Request&) -> Result<Response> {
    MutexLock lock(mutex_);
    return Response::json(ready_ ? 200 : 503, ready_ ? R"({"ready":true})" : R"({"ready":false,"why":"starting"})");
  });
  add("/v1/node/health", "health",
      [](Request&) -> Result<Response> { return Response::json(200, R"({"healthy":true})"); });
  add("/metrics", "metrics", [](Request&) -> Result<Response> { return Response::text(200, "up 1\n"); });
}

Result<Response> FakeNode::append(Request& request) {
  MutexLock lock(mutex_);
  std::string key(request.params.find_string("Idempotency-Key").value_or(""));
  appends_.push_back({key, request.body});
  if (!refusals_.empty()) {
    Error error = refusals_.front();
    refusals_.pop_front();
    return tl::unexpected(error);
  }
  if (auto known = answers_.find(key); known != answers_.end()) return Response::json(200, known->second);
  std::string name(request.params.string("topic"));
  auto topic = find(name);
  if (!topic) return tl::unexpected(topic.error());
  std::string offsets;
  const json body = json::parse(request.body);
  for (const json& record : body["records"]) {
    auto& partition = (*topic)->partitions.at(record.value("partition", 0));
    offsets += fmt::format(R"({}{{"partition":0,"offset":"{}"}})", offsets.empty() ? "" : ",", partition.size());
    json shown = record;
    shown["value"] = envelope_of(record.value("value", json()));
    partition.push_back(shown.dump());
  }
  return Response::json(200, answers_[key] = "{\"offsets\":[" + offsets + "]}");
}

// At most two records an answer, so that clients have to page. A timestamp finds the record of that millisecond.
Result<Response> FakeNode::read(Request& request) {
  MutexLock lock(mutex_);
  auto topic = find(request.params.string("topic"));
  if (!topic) return tl::unexpected(topic.error());
  const auto& records = (*topic)->partitions.at(static_cast<size_t>(request.params.integer("partition")));
  auto time = request.params.find_integer("timestamp");
  constexpr int64_t kFirst = 1'777'636'800'000;  // 2026-05-01T12:00:00Z
  auto from = static_cast<size_t>(time ? std::max<int64_t>(*time - kFirst, 0) : request.params.integer("offset"));
  if (from > records.size() && !time)
    return fail(ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE", fmt::format("there is no offset {}", from));
  from = std::min(from, records.size());
  size_t end =
      std::min(records.size(), from + std::min<size_t>(2, static_cast<size_t>(request.params.integer("limit"))));
  std::string list;
  for (size_t i = from; i < end; ++i) list += (i > from ? "," : "") + records[i];
  return Response::json(
      200, fmt::format(R"({{"records":[{}],"nextOffset":"{}","highWatermark":"{}","logStartOffset":"0"}})", list, end,
                       records.size()));
}

void FakeNode::stream(Request request, http::Responder responder) {
  auto events = http::EventStream::start(responder);
  MutexLock lock(mutex_);
  stream_requests_.push_back({std::string(request.params.find_string("from").value_or("")),
                              std::string(request.last_event_id().value_or(""))});
  changed_.notify_all();
  bool stays = true;
  if (!scripts_.empty()) {
    for (const Event& event : scripts_.front().events) events.send("record", event.id, event.data);
    stays = scripts_.front().stays;
    scripts_.pop_front();
  }
  if (stays) {
    open_streams_.push_back(events);
  } else {
    events.close();
  }
}

}  // namespace millrace::cli::tests
