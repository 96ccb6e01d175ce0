#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/http/test_server.h"

namespace millrace::http::tests {
namespace {

using Json = nlohmann::json;

Json document(const TestServer& server) {
  return Json::parse(server.client().get("/openapi.json")->body);
}

TEST(OpenApi, HasExactlyTheRoutes) {
  TestServer server;
  Json json = document(server);
  EXPECT_EQ(json["openapi"], "3.1.0");
  EXPECT_EQ(json["info"]["version"], "1.2.3");
  std::set<std::string> in_document, in_router;
  for (const auto& [path, methods] : json["paths"].items())
    for (const auto& [method, operation] : methods.items())
      in_document.insert(method + " " + path + " " + operation["operationId"].get<std::string>());
  for (const auto& route : server.router().routes()) {
    std::string method(to_string(route->method));
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    in_router.insert(method + " " + route->path + " " + route->operation_id);
  }
  EXPECT_EQ(in_document, in_router);
  EXPECT_TRUE(in_document.contains("get /openapi.json getOpenApi"));
}

TEST(OpenApi, DescribesParametersAsTheRouterChecksThem) {
  TestServer server;
  Json operation = document(server)["paths"]["/v1/things/{thing}"]["get"];
  std::map<std::string, Json> params;
  for (const Json& param : operation["parameters"]) params[param["name"]] = param;
  EXPECT_EQ(params["thing"]["in"], "path");
  EXPECT_EQ(params["thing"]["required"], true);
  EXPECT_EQ(params["thing"]["schema"]["maxLength"], 249);
  EXPECT_EQ(params["limit"]["in"], "query");
  EXPECT_EQ(params["limit"]["schema"]["type"], "integer");
  EXPECT_EQ(params["limit"]["schema"]["minimum"], 1);
  EXPECT_EQ(params["limit"]["schema"]["maximum"], 100);
  EXPECT_EQ(params["limit"]["schema"]["default"], 10);
  EXPECT_EQ(params["wait"]["schema"]["default"], "0s");
  EXPECT_EQ(params["deep"]["schema"]["default"], false);
  EXPECT_EQ(params["order"]["schema"]["enum"], Json::array({"up", "down"}));
  EXPECT_EQ(params["Idempotency-Key"]["in"], "header");

  // A value the document allows is taken, and one it does not is refused.
  Client client = server.client();
  EXPECT_EQ(client.get("/v1/things/x?limit=100")->status, 200);
  EXPECT_EQ(client.get("/v1/things/x?limit=101")->status, 400);
}

TEST(OpenApi, DescribesAnswersAndProblems) {
  TestServer server;
  Json json = document(server);
  Json responses = json["paths"]["/v1/things/{thing}"]["get"]["responses"];
  EXPECT_EQ(responses["200"]["content"]["application/json"]["schema"]["$ref"], "#/components/schemas/Thing");
  EXPECT_EQ(responses["404"]["description"], "`THING_NOT_FOUND`: there is no such thing");
  EXPECT_EQ(responses["409"]["content"]["application/problem+json"]["schema"]["$ref"], "#/components/schemas/Problem");
  EXPECT_TRUE(responses.contains("default"));
  EXPECT_TRUE(json["components"]["schemas"].contains("Thing"));
  EXPECT_EQ(json["paths"]["/v1/echo"]["post"]["requestBody"]["required"], false);
}

// For the independent validator (openapi_validator in ctest), which runs this test to get a document.
TEST(OpenApi, WritesADocumentForTheValidator) {
  const char* path = std::getenv("MILLRACE_OPENAPI_OUT");
  if (path == nullptr) GTEST_SKIP() << "MILLRACE_OPENAPI_OUT says where to";
  TestServer server;
  std::ofstream(path) << server.client().get("/openapi.json")->body;
}

}  // namespace
}  // namespace millrace::http::tests
