#include "http/router.h"

#include <gtest/gtest.h>

namespace millrace::http {
namespace {

Route route(Method method, std::string path, std::string id, std::vector<Param> params = {}) {
  return {.method = method,
          .path = std::move(path),
          .operation_id = std::move(id),
          .summary = "s",
          .params = std::move(params),
          .answers = {{200, "ok"}},
          .handler = [](Request, Responder) {}};
}

Router table() {
  Router router;
  router.add(route(Method::kGet, "/v1/topics", "list",
                   {Param::integer("limit", "").range(1, 10).otherwise("5"), Param::string("after", "")}));
  router.add(route(Method::kPost, "/v1/topics", "create"));
  router.add(route(Method::kGet, "/v1/topics/{topic}", "get", {Param::string("topic", "")}));
  router.add(route(Method::kGet, "/v1/topics/special", "special"));
  router.add(
      route(Method::kGet, "/v1/topics/{topic}/partitions/{partition}/records", "fetch",
            {Param::string("unit", "").required(), Param::integer("partition", ""), Param::string("topic", "")}));
  router.add(route(Method::kPost, "/v1/topics/{topic}:trim", "trim", {Param::string("topic", "")}));
  router.add(route(Method::kPost, "/v1/upgrade:start", "start"));
  router.add(
      route(Method::kPost, "/v1/keyed", "keyed", {Param::string("Idempotency-Key", "").range(1, 4).in_header()}));
  return router;
}

Result<Router::Match> find(Method method, std::string_view target, const Headers& headers = {}) {
  static const Router router = table();
  return router.find(method, target, headers);
}

std::string id(Method method, std::string_view target) {
  auto match = find(method, target);
  if (!match) return std::string(match.error().code);
  return match->route == nullptr ? "405 " + match->allow : match->route->operation_id;
}

TEST(Router, FindsLiteralsCapturesAndVerbs) {
  EXPECT_EQ(id(Method::kGet, "/v1/topics"), "list");
  EXPECT_EQ(id(Method::kPost, "/v1/topics"), "create");
  EXPECT_EQ(id(Method::kHead, "/v1/topics"), "list");
  EXPECT_EQ(id(Method::kGet, "/v1/topics/special"), "special");
  EXPECT_EQ(id(Method::kGet, "/v1/topics/other"), "get");
  EXPECT_EQ(id(Method::kPost, "/v1/topics/a:trim"), "trim");
  EXPECT_EQ(id(Method::kPost, "/v1/upgrade:start"), "start");
  EXPECT_EQ(id(Method::kGet, "/v1/topics/special/partitions/3/records?unit=x"), "fetch");
}

TEST(Router, DecodesCapturesAfterTheSplit) {
  auto match = find(Method::kPost, "/v1/topics/a%3Ab%2Fc:trim");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->params.string("topic"), "a:b/c");
  match = find(Method::kGet, "/v1/topics/a%3Atrim");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->params.string("topic"), "a:trim");
}

TEST(Router, ReadsPathParametersWhateverTheOrderOfTheirDeclaration) {
  auto match = find(Method::kGet, "/v1/topics/t/partitions/7/records?unit=x");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->params.string("topic"), "t");
  EXPECT_EQ(match->params.integer("partition"), 7);
  EXPECT_EQ(match->params.string("unit"), "x");
}

TEST(Router, WhatIsNotThere) {
  for (const char* path : {"/", "/v1", "/v1/topics/", "/v1/topics/a/b", "/v1//topics", "/v1/topics/a:polish",
                           "/v1/topics/a:b:c", "/V1/topics", "/v1/topics/:trim"})
    EXPECT_EQ(id(Method::kGet, path), "NO_SUCH_PATH") << path;
  EXPECT_NE(find(Method::kGet, "/v1/topics/a:b").error().message.find("%3A"), std::string::npos);
}

TEST(Router, AnotherMethodIsAllowed) {
  EXPECT_EQ(id(Method::kDelete, "/v1/topics"), "405 GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(id(Method::kGet, "/v1/topics/a:trim"), "405 POST, OPTIONS");
  EXPECT_EQ(id(Method::kOptions, "/v1/topics/a"), "405 GET, HEAD, OPTIONS");
}

TEST(Router, RefusesWhatCouldBeReadTwoWays) {
  for (const char* target : {"v1/topics", "/v1/../v1/topics", "/v1/./topics", "/v1/topics/%zz", "/v1/topics/%00",
                             "/v1/topics/%ff", "/v1/topics?limit=%zz", "/v1/topics#x", "/v1/topics?after=a#b"})
    EXPECT_EQ(id(Method::kGet, target), "INVALID_TARGET") << target;
}

TEST(Router, ChecksQueryParameters) {
  EXPECT_EQ(find(Method::kGet, "/v1/topics?limit=7&after=x+y%26")->params.integer("limit"), 7);
  EXPECT_EQ(find(Method::kGet, "/v1/topics?limit=7&after=x+y%26")->params.string("after"), "x y&");
  EXPECT_EQ(find(Method::kGet, "/v1/topics")->params.integer("limit"), 5);
  EXPECT_FALSE(find(Method::kGet, "/v1/topics")->params.has("after"));
  EXPECT_EQ(find(Method::kGet, "/v1/topics")->params.find_string("after"), std::nullopt);
  EXPECT_EQ(find(Method::kGet, "/v1/topics")->params.find_integer("limit"), 5);

  EXPECT_EQ(id(Method::kGet, "/v1/topics?limit=11"), "INVALID_PARAMETER");
  EXPECT_EQ(id(Method::kGet, "/v1/topics?limit"), "INVALID_PARAMETER");
  EXPECT_EQ(id(Method::kGet, "/v1/topics?limit=1&limit=1"), "DOUBLED_PARAMETER");
  EXPECT_EQ(id(Method::kGet, "/v1/topics?Limit=1"), "UNKNOWN_PARAMETER");
  EXPECT_EQ(id(Method::kGet, "/v1/topics?limit=1&&after=2"), "UNKNOWN_PARAMETER");
  EXPECT_EQ(id(Method::kGet, "/v1/topics/t/partitions/7/records"), "MISSING_PARAMETER");
  EXPECT_EQ(id(Method::kGet, "/v1/topics/t/partitions/x/records?unit=x"), "INVALID_PARAMETER");
  EXPECT_EQ(find(Method::kGet, "/v1/topics?limt=1").error().message,
            "GET /v1/topics has no query parameter 'limt'; did you mean 'limit'?");
  EXPECT_EQ(find(Method::kPost, "/v1/upgrade:start?x=1").error().message,
            "POST /v1/upgrade:start has no query parameter 'x'; it takes none");
}

TEST(Router, ChecksDeclaredHeaders) {
  Headers headers;
  EXPECT_FALSE(find(Method::kPost, "/v1/keyed", headers)->params.has("Idempotency-Key"));
  headers.add("idempotency-key", "abcd");
  EXPECT_EQ(find(Method::kPost, "/v1/keyed", headers)->params.string("Idempotency-Key"), "abcd");
  headers.add("Idempotency-Key", "abcd");
  EXPECT_EQ(find(Method::kPost, "/v1/keyed", headers).error().code, "DOUBLED_PARAMETER");
  headers.clear();
  headers.add("Idempotency-Key", "too long");
  EXPECT_EQ(find(Method::kPost, "/v1/keyed", headers).error().code, "INVALID_PARAMETER");
}

TEST(RouterDeathTest, MistakesInTheTableAreAssertions) {
  Router router = table();
  EXPECT_DEATH(router.add(route(Method::kGet, "/v1/topics", "other")), "registered twice");
  EXPECT_DEATH(router.add(route(Method::kGet, "/v1/other", "list")), "operation id");
  EXPECT_DEATH(router.add(route(Method::kGet, "/v1/other/{id}", "other")), "not declared");
  EXPECT_DEATH(router.add(route(Method::kHead, "/v1/other", "other")), "HEAD");
  EXPECT_DEATH(router.add_schema("Bad", "{"), "not JSON");
  EXPECT_DEATH(Param::integer("n", "").range(1, 5).otherwise("9"), "default");
  auto match = router.find(Method::kGet, "/v1/topics", {});
  EXPECT_DEATH((void)match->params.integer("nobody"), "does not declare");
  EXPECT_DEATH((void)match->params.string("after"), "absent");
  EXPECT_DEATH((void)match->params.duration("limit"), "another type");
}

}  // namespace
}  // namespace millrace::http
