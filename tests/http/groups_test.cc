#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>

#include "bus/memory_commit_log.h"
#include "http/routes/routes.h"
#include "http/server.h"
#include "tests/http/test_server.h"

namespace millrace::http::tests {
namespace {

using Json = nlohmann::json;

/// The routes of groups over a log in memory; the clock stands still unless a test moves it.
class GroupRoutes : public ::testing::Test {
 protected:
  GroupRoutes() {
    add_topic_routes(*router_, topics_);
    add_record_routes(*router_, records_, log_, {4u << 20, std::chrono::minutes(5)});
    add_group_routes(*router_, groups_, log_, {4u << 20, std::chrono::minutes(5)});
    server_ = std::move(Server::listen(TestServer::small_options(), router_, health_).value());
    server_->start();
    call("POST", "/v1/topics", R"({"name":"t","partitions":2})");
  }
  static group::Coordinator::Options options() {
    group::Coordinator::Options options;
    options.limits.initial_rebalance_delay_ms = 0;
    return options;
  }
  Client::Response call(std::string_view method, std::string_view target, std::string_view body = {}) {
    auto client = Client::create("127.0.0.1:" + std::to_string(server_->port()));
    auto response = client->request(method, target, {}, body);
    EXPECT_TRUE(response) << target;
    return response ? *std::move(response) : Client::Response{};
  }
  static std::string problem_of(const Client::Response& response) {
    Json json = Json::parse(response.body, nullptr, false);
    return std::to_string(response.status) + " " + (json.is_object() ? json.value("code", "") : response.body);
  }
  Json join(const std::string& more = "") {
    auto response =
        call("POST", "/v1/groups/g/members", R"({"topics":["t"],"autoOffsetReset":"earliest")" + more + "}");
    EXPECT_EQ(response.status, 201) << response.body;
    return Json::parse(response.body, nullptr, false);
  }
  static std::string path(const Json& member, const std::string& rest = "") {
    return "/v1/groups/g/members/" + member["memberId"].get<std::string>() + rest;
  }
  void produce(const std::string& value, int partition) {
    auto made = call("POST", "/v1/topics/t/records",
                     R"({"records":[{"value":")" + value + R"(","partition":)" + std::to_string(partition) + "}]}");
    EXPECT_EQ(made.status, 200) << made.body;
  }
  Json read(const Json& member, const std::string& query = "") {
    auto response = call("GET", path(member, "/records" + query));
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body, nullptr, false);
  }

  ManualClock clock_;
  bus::MemoryCommitLog log_{clock_};
  api::TopicsApi topics_{log_, clock_, {}};
  api::RecordsApi records_{log_, topics_, clock_};
  std::unique_ptr<group::Coordinator> coordinator_ = *group::Coordinator::start(log_, clock_, options());
  group::Consumers consumers_{*coordinator_, log_};
  api::GroupsApi groups_{log_, topics_, *coordinator_, consumers_};
  Health health_{SystemClock::instance()};
  std::shared_ptr<Router> router_ = std::make_shared<Router>();
  std::unique_ptr<Server> server_;
};

TEST_F(GroupRoutes, ReadCommitAndReadOn) {
  Json member = join();
  EXPECT_EQ(member["generation"], 1);
  EXPECT_EQ(member["assignment"], Json::parse(R"([{"topic":"t","partitions":[0,1]}])"));
  produce("one", 0);
  produce("two", 1);
  Json page = read(member);
  EXPECT_EQ(page["records"].size(), 2u);
  EXPECT_EQ(read(member)["records"].size(), 2u) << "a lost answer loses nothing";
  Json commit = {{"generation", page["generation"]}, {"offsets", page["next"]}};
  EXPECT_EQ(call("POST", path(member, "/offsets"), commit.dump()).status, 204);
  EXPECT_EQ(read(member)["records"].size(), 0u);
  Json group = Json::parse(call("GET", "/v1/groups/g").body);
  EXPECT_EQ(group["state"], "Stable");
  EXPECT_EQ(group["totalLag"], "0");
  EXPECT_EQ(group["members"][0]["clientId"], "http");
  EXPECT_EQ(Json::parse(call("GET", path(member)).body)["memberId"], member["memberId"]);
}

TEST_F(GroupRoutes, ALongPollIsWokenByARebalanceAndByRecords) {
  Json first = join();
  auto polled = std::async(std::launch::async, [&] { return read(first, "?wait=5m"); });
  // Answered only because the poll that waits joins the rebalance.
  Json second = join();
  EXPECT_EQ(second["generation"], 2);
  EXPECT_EQ(second["assignment"][0]["partitions"].size(), 1u);
  Json group = Json::parse(call("GET", "/v1/groups/g").body);
  for (const Json& member : group["members"])
    if (member["memberId"] == first["memberId"]) produce("x", member["assignment"][0]["partitions"][0].get<int>());
  Json page = polled.get();
  EXPECT_EQ(page["generation"], 2);
  EXPECT_EQ(page["records"].size(), 1u);
}

TEST_F(GroupRoutes, RefusalsHaveStableCodes) {
  EXPECT_EQ(problem_of(call("GET", "/v1/groups/g")), "404 UNKNOWN_GROUP");
  EXPECT_EQ(problem_of(call("POST", "/v1/groups/g/members", R"({"topics":["none"]})")), "404 UNKNOWN_TOPIC");
  EXPECT_EQ(problem_of(call("POST", "/v1/groups/g/members", R"({"topics":[]})")), "400 INVALID_FIELD");
  EXPECT_EQ(problem_of(call("POST", "/v1/groups/g/members", R"({"topics":["t"],"sessionTimeout":"1s"})")),
            "400 INVALID_SESSION_TIMEOUT");
  Json member = join();
  EXPECT_EQ(problem_of(call("GET", "/v1/groups/g/members/nobody/records")), "404 UNKNOWN_MEMBER_ID");
  auto commit = [&](const std::string& body) { return problem_of(call("POST", path(member, "/offsets"), body)); };
  produce("x", 0);
  EXPECT_EQ(commit(R"({"generation":0,"offsets":[{"topic":"t","partition":0,"offset":1}]})"), "409 ILLEGAL_GENERATION");
  EXPECT_EQ(commit(R"({"offsets":[{"topic":"t","partition":0,"offset":2}]})"), "400 OFFSET_OUT_OF_RANGE");
  EXPECT_EQ(commit(R"({"offsets":[{"topic":"t","partition":7,"offset":0}]})"), "409 PARTITION_NOT_ASSIGNED");
  EXPECT_EQ(commit(R"({"offsets":[]})"), "400 INVALID_FIELD");
  EXPECT_EQ(
      commit(R"({"offsets":[{"topic":"t","partition":0,"offset":1,"metadata":")" + std::string(4'097, 'm') + R"("}]})"),
      "400 OFFSET_METADATA_TOO_LARGE");
  EXPECT_EQ(problem_of(call("DELETE", "/v1/groups/g")), "409 GROUP_NOT_EMPTY");
  EXPECT_EQ(problem_of(call("POST", "/v1/groups/g:resetOffsets", R"({"topic":"t","to":"latest"})")),
            "409 GROUP_NOT_EMPTY");
  EXPECT_EQ(call("DELETE", path(member)).status, 204);
  EXPECT_EQ(problem_of(call("GET", path(member, "/records"))), "404 UNKNOWN_MEMBER_ID");
}

TEST_F(GroupRoutes, MetadataComesBack) {
  Json member = join();
  EXPECT_EQ(call("POST", path(member, "/offsets"),
                 R"({"offsets":[{"topic":"t","partition":1,"offset":0,"metadata":"a \"note\"","leaderEpoch":3}]})")
                .status,
            204);
  Json group = Json::parse(call("GET", "/v1/groups/g").body);
  EXPECT_EQ(group["partitions"][1]["metadata"], "a \"note\"");
  EXPECT_EQ(group["partitions"][1]["leaderEpoch"], 3);
}

TEST_F(GroupRoutes, ResetShowsBeforeItMoves) {
  produce("x", 0);
  Json member = join();
  ASSERT_EQ(call("DELETE", path(member)).status, 204);
  const std::string body = R"({"topics":["t"],"partitions":[0],"to":"latest","dryRun":)";
  Json dry = Json::parse(call("POST", "/v1/groups/g:resetOffsets", body + "true}").body);
  EXPECT_EQ(dry["partitions"], Json::parse(R"([{"topic":"t","partition":0,"from":null,"to":"1"}])"));
  EXPECT_EQ(Json::parse(call("GET", "/v1/groups/g").body)["partitions"].size(), 0u);
  EXPECT_EQ(call("POST", "/v1/groups/g:resetOffsets", body + "false}").status, 200);
  EXPECT_EQ(Json::parse(call("GET", "/v1/groups/g").body)["partitions"][0]["offset"], "1");
  EXPECT_EQ(call("DELETE", "/v1/groups/g").status, 204);
  EXPECT_EQ(Json::parse(call("GET", "/v1/groups").body)["groups"].size(), 0u);
}

TEST_F(GroupRoutes, AMemberThatIsSilentGoes) {
  Json member = join();
  clock_.advance(std::chrono::seconds(30));
  coordinator_->run_due();
  EXPECT_EQ(problem_of(call("GET", path(member, "/records"))), "404 UNKNOWN_MEMBER_ID");
}

}  // namespace
}  // namespace millrace::http::tests
