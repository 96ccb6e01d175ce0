#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "bus/memory_commit_log.h"
#include "http/routes/routes.h"
#include "http/server.h"
#include "tests/http/test_server.h"

namespace millrace::http::tests {
namespace {

using Json = nlohmann::json;

/// The API's real routes over a log in memory.
class Routes : public ::testing::Test {
 protected:
  Routes() {
    add_topic_routes(*router_, topics_);
    add_record_routes(*router_, records_, log_, {4u << 20, std::chrono::minutes(5)});
    add_stream_route(*router_, records_, topics_, log_);
    add_node_routes(*router_,
                    {[] { return R"({"name":"test"})"; }, [this] { return ready_; }, [] { return "millrace_up 1\n"; },
                     std::chrono::minutes(5)},
                    health_);
    router_->add_openapi("Test", "1", "For tests.");
    server_ = std::move(Server::listen(TestServer::small_options(), router_, health_).value());
    server_->start();
  }

  Client client() const { return std::move(Client::create("127.0.0.1:" + std::to_string(server_->port())).value()); }
  Client::Response call(std::string_view method, std::string_view target, std::string_view body = {},
                        const Client::Fields& fields = {}) {
    auto response = client().request(method, target, fields, body);
    EXPECT_TRUE(response) << target;
    return response ? *std::move(response) : Client::Response{};
  }
  /// The code of a problem, with its status and pointer: "404 UNKNOWN_TOPIC".
  std::string problem_of(const Client::Response& response) {
    Json json = Json::parse(response.body, nullptr, false);
    if (!json.is_object() || !json.contains("code")) return std::to_string(response.status) + " " + response.body;
    std::string text = std::to_string(response.status) + " " + json["code"].get<std::string>();
    if (json.contains("pointer")) text += " " + json["pointer"].get<std::string>();
    return text;
  }
  void create(const std::string& body = R"({"name":"t","partitions":2})") {
    ASSERT_EQ(call("POST", "/v1/topics", body).status, 201);
  }
  Json produce(const std::string& records, const Client::Fields& fields = {}) {
    auto response = call("POST", "/v1/topics/t/records", "{\"records\":" + records + "}", fields);
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body, nullptr, false);
  }

  ManualClock clock_;
  bus::MemoryCommitLog log_{clock_};
  api::TopicsApi topics_{log_, clock_, {}};
  api::RecordsApi records_{log_, topics_, clock_};
  Status ready_;
  Health health_{SystemClock::instance()};
  std::shared_ptr<Router> router_ = std::make_shared<Router>();
  std::unique_ptr<Server> server_;
};

TEST_F(Routes, EveryRouteIsDocumentedAndNothingElse) {
  Json paths = Json::parse(call("GET", "/openapi.json").body)["paths"];
  std::set<std::string> documented, served;
  for (const auto& [path, methods] : paths.items())
    for (const auto& [method, operation] : methods.items()) documented.insert(method + " " + path);
  for (const auto& route : router_->routes()) {
    std::string method(to_string(route->method));
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    served.insert(method + " " + route->path);
  }
  EXPECT_EQ(documented, served);
  EXPECT_TRUE(served.contains("post /v1/topics/{topic}/records"));
}

TEST_F(Routes, ATopicIsCreatedShownChangedAndDeleted) {
  auto created = call("POST", "/v1/topics", R"({"name":"t","partitions":3,"configs":{"retention.ms":"3600000"}})");
  ASSERT_EQ(created.status, 201) << created.body;
  Json topic = Json::parse(created.body);
  EXPECT_EQ(topic["partitions"], 3);
  EXPECT_EQ(topic["configs"]["retention.ms"], "3600000");
  EXPECT_EQ(call("GET", "/v1/topics/t").body, created.body);
  EXPECT_EQ(problem_of(call("POST", "/v1/topics", R"({"name":"t"})")), "409 TOPIC_EXISTS");
  auto changed = call("PATCH", "/v1/topics/t", R"({"configs":{"retention.ms":null,"cleanup.policy":"compact"}})");
  ASSERT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(Json::parse(changed.body)["configs"]["retention.ms"], "604800000");
  EXPECT_EQ(Json::parse(changed.body)["configs"]["cleanup.policy"], "compact");
  EXPECT_EQ(Json::parse(call("GET", "/v1/topics/t/partitions").body)["partitions"].size(), 3u);
  EXPECT_EQ(call("DELETE", "/v1/topics/t").status, 204);
  for (auto [method, target] : {std::pair{"GET", "/v1/topics/t"},
                                {"DELETE", "/v1/topics/t"},
                                {"GET", "/v1/topics/t/partitions"},
                                {"GET", "/v1/topics/t/stream"},
                                {"GET", "/v1/topics/t/partitions/0/records"}})
    EXPECT_EQ(problem_of(call(method, target)), "404 UNKNOWN_TOPIC") << target;
}

TEST_F(Routes, ABadTopicIsRefusedWithThePlace) {
  for (auto [body, problem] :
       {std::pair{"", "400 BODY_MISSING"},
        {"[]", "400 INVALID_FIELD"},
        {R"({"partitions":1})", "400 MISSING_FIELD /name"},
        {R"({"name":"a/b"})", "400 INVALID_TOPIC_NAME /name"},
        {R"({"name":".."})", "400 INVALID_TOPIC_NAME /name"},
        {R"({"name":"t","partitions":0})", "400 INVALID_FIELD /partitions"},
        {R"({"name":"t","partitions":10001})", "400 INVALID_FIELD /partitions"},
        {R"({"name":"t","partition":1})", "400 UNKNOWN_FIELD /partition"},
        {R"({"name":"t","configs":{"retention.msec":1}})", "400 UNKNOWN_CONFIG /configs/retention.msec"},
        {R"({"name":"t","configs":{"retention.ms":-2}})", "400 INVALID_CONFIG /configs/retention.ms"},
        {R"({"name":"t","configs":{"cleanup.policy":"both"}})", "400 INVALID_CONFIG /configs/cleanup.policy"},
        {R"({"name":"t","name":"u"})", "400 INVALID_JSON"}})
    EXPECT_EQ(problem_of(call("POST", "/v1/topics", body)), problem) << body;
}

TEST_F(Routes, TopicsAreListedAPageAtATime) {
  for (std::string name : {"c", "a", "b"}) create(R"({"name":")" + name + R"("})");
  Json first = Json::parse(call("GET", "/v1/topics?limit=2").body);
  ASSERT_EQ(first["topics"].size(), 2u);
  EXPECT_EQ(first["topics"][0]["name"], "a");
  EXPECT_EQ(first["next"], "b");
  Json second = Json::parse(call("GET", "/v1/topics?limit=2&after=b").body);
  ASSERT_EQ(second["topics"].size(), 1u);
  EXPECT_FALSE(second.contains("next"));
}

TEST_F(Routes, WhatIsProducedIsRead) {
  create();
  Json offsets = produce(R"([{"key":"k","value":{"a":1},"partition":1,"timestamp":5},
    {"value":"text","partition":1,"headers":[{"name":"h","value":"v"}]},{"value":{"type":"BINARY","data":"AP8="},"partition":0}])");
  EXPECT_EQ(offsets["offsets"].dump(),
            R"([{"offset":"0","partition":1},{"offset":"1","partition":1},{"offset":"0","partition":0}])");
  Json read = Json::parse(call("GET", "/v1/topics/t/partitions/1/records").body);
  ASSERT_EQ(read["records"].size(), 2u);
  EXPECT_EQ(read["records"][0]["value"]["data"]["a"], 1);
  EXPECT_EQ(read["records"][0]["timestamp"], "1970-01-01T00:00:00.005Z");
  EXPECT_EQ(read["records"][1]["headers"][0]["value"]["data"], "v");
  EXPECT_EQ(read["nextOffset"], "2");
  Json late = Json::parse(call("GET", "/v1/topics/t/partitions/1/records?timestamp=6").body);
  ASSERT_EQ(late["records"].size(), 1u);
  EXPECT_EQ(late["records"][0]["offset"], "1");
  EXPECT_EQ(Json::parse(call("GET", "/v1/topics/t/partitions/1/records?limit=1").body)["nextOffset"], "1");
}

TEST_F(Routes, ARepeatedRequestIsAnsweredAsTheFirstOne) {
  create();
  const std::string records = R"([{"value":"a"},{"key":"k","value":"b"},{"value":"c"}])";
  Json first = produce(records, {{"Idempotency-Key", "1"}});
  EXPECT_EQ(produce(records, {{"Idempotency-Key", "1"}}), first);
  EXPECT_EQ(
      problem_of(call("POST", "/v1/topics/t/records", R"({"records":[{"value":"x"}]})", {{"Idempotency-Key", "1"}})),
      "409 IDEMPOTENCY_KEY_REUSED");
  EXPECT_NE(produce(records, {{"Idempotency-Key", "2"}}), first);
}

TEST_F(Routes, ABadRecordRefusesTheWholeRequestAndNamesThePlace) {
  create();
  for (auto [records, problem] :
       {std::pair{"[]", "400 INVALID_FIELD /records"},
        {"{}", "400 INVALID_FIELD /records"},
        {R"([{"value":"a"},{"partition":2}])", "404 UNKNOWN_PARTITION /records/1/partition"},
        {R"([{"valeu":1}])", "400 UNKNOWN_FIELD /records/0/valeu"},
        {R"([{"timestamp":"yesterday"}])", "400 INVALID_FIELD /records/0/timestamp"},
        {R"([{"headers":[{"value":1}]}])", "400 MISSING_FIELD /records/0/headers/0/name"},
        {R"([{"value":{"type":"BINARY","data":"?"}}])", "400 INVALID_RECORD_VALUE /records/0/value/data"}})
    EXPECT_EQ(problem_of(call("POST", "/v1/topics/t/records", std::string(R"({"records":)") + records + "}")), problem)
        << records;
  std::string large = R"({"records":[{"value":")" + std::string(1 << 20, 'x') + R"("}]})";
  EXPECT_EQ(problem_of(call("POST", "/v1/topics/t/records", large)), "400 MESSAGE_TOO_LARGE /records/0");
  EXPECT_EQ(Json::parse(call("GET", "/v1/topics/t/partitions/0/records").body)["highWatermark"], "0");
}

TEST_F(Routes, AReadOutsideTheLogIsAnError) {
  create();
  EXPECT_EQ(problem_of(call("GET", "/v1/topics/t/partitions/0/records?offset=1")), "400 OFFSET_OUT_OF_RANGE");
  EXPECT_EQ(problem_of(call("GET", "/v1/topics/t/partitions/2/records")), "404 UNKNOWN_PARTITION");
  EXPECT_EQ(problem_of(call("GET", "/v1/topics/t/partitions/0/records?offset=0&timestamp=1")), "400 INVALID_PARAMETER");
  EXPECT_EQ(problem_of(call("GET", "/v1/topics/t/stream?from=0:0,0:1")), "400 INVALID_POSITION");
  EXPECT_EQ(problem_of(call("GET", "/v1/topics/t/stream?from=7:0")), "404 UNKNOWN_PARTITION");
}

TEST_F(Routes, ALongPollIsAnsweredByTheRecordItWaitsFor) {
  create();
  std::string body;
  std::thread poll([&] { body = call("GET", "/v1/topics/t/partitions/0/records?offset=0&wait=4m").body; });
  eventually([&] { return server_->stats().in_flight.load() == 1; });
  produce(R"([{"value":"x","partition":0}])");
  poll.join();
  EXPECT_EQ(Json::parse(body)["records"].size(), 1u);
}

TEST_F(Routes, AStreamGoesOnWhereItsLastEventWas) {
  create();
  produce(R"([{"value":"a","partition":0},{"value":"b","partition":1},{"value":"c","partition":0}])");
  std::vector<std::string> ids, values;
  auto take = [&](size_t n, std::string target, const Client::Fields& fields) {
    size_t taken = 0;
    (void)client().stream_events(target, fields, [&](const Client::Event& event) {
      ids.push_back(event.id);
      values.push_back(Json::parse(event.data)["value"]["data"]);
      return ++taken < n;
    });
  };
  take(2, "/v1/topics/t/stream?from=earliest", {});
  std::string last = ids.back();
  take(1, "/v1/topics/t/stream?from=earliest", {{"Last-Event-ID", last}});
  EXPECT_EQ(values, (std::vector<std::string>{"a", "c", "b"}));
  EXPECT_EQ(ids.back(), "0:2,1:1");
}

TEST_F(Routes, TheNodeSaysHowItFares) {
  EXPECT_EQ(Json::parse(call("GET", "/v1/node").body)["name"], "test");
  EXPECT_TRUE(Json::parse(call("GET", "/v1/node/health").body)["healthy"]);
  EXPECT_EQ(call("GET", "/v1/node/ready").status, 200);
  ready_ = fail(ErrorKind::kUnavailable, "STORE_FAILED", "broken");
  EXPECT_EQ(problem_of(call("GET", "/v1/node/ready")), "503 NOT_READY");
  EXPECT_EQ(call("GET", "/metrics").body, "millrace_up 1\n");
}

}  // namespace
}  // namespace millrace::http::tests
