#include <fmt/format.h>

#include "http/problem.h"
#include "http/routes/routes.h"

namespace millrace::http {
namespace {

constexpr auto kHealthSchema =
    R"({"type":"object","required":["healthy","loops"],"properties":{"healthy":{"type":"boolean"},
  "loops":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"beats":{"type":"string"},
  "unansweredMs":{"type":"string"}}}}}})";

Response health_of(Health& health, std::chrono::milliseconds stuck_after) {
  bool healthy = true;
  std::string loops;
  for (const Health::LoopState& loop : health.check()) {
    healthy = healthy && loop.unanswered_ns < std::chrono::nanoseconds(stuck_after).count();
    if (!loops.empty()) loops += ',';
    loops += fmt::format(R"({{"name":{},"beats":"{}","unansweredMs":"{}"}})", json_quote(loop.name), loop.beats,
                         loop.unanswered_ns / 1'000'000);
  }
  return Response::json(healthy ? 200 : 503, fmt::format(R"({{"healthy":{},"loops":[{}]}})", healthy, loops));
}

}  // namespace

void add_node_routes(Router& router, NodeStatus status, Health& health) {
  router.add({.path = "/v1/node",
              .operation_id = "getNode",
              .tag = "node",
              .summary = "Says what the node is and how it fares",
              .answers = {{200, "The node.", R"({"type":"object"})"}},
              .handler = answer_now([info = std::move(status.info)](Request&) -> Result<Response> {
                return Response::json(200, info());
              })});
  router.add({.path = "/v1/node/health",
              .operation_id = "getHealth",
              .tag = "node",
              .summary = "Says whether every loop makes progress",
              .answers = {{200, "All do.", kHealthSchema}, {503, "At least one is stuck.", kHealthSchema}},
              .handler = answer_now([&health, stuck = status.stuck_after](Request&) -> Result<Response> {
                return health_of(health, stuck);
              })});
  router.add({.path = "/v1/node/ready",
              .operation_id = "getReady",
              .tag = "node",
              .summary = "Says whether the node takes commits",
              .answers = {{200, "It does.", R"({"type":"object","properties":{"ready":{"type":"boolean"}}})"}},
              .problems = {{ErrorKind::kUnavailable, "NOT_READY", "commits are refused now; the detail says why"}},
              .handler = answer_now([ready = std::move(status.ready)](Request&) -> Result<Response> {
                if (Status now = ready(); !now)
                  return fail(ErrorKind::kUnavailable, "NOT_READY", to_string(now.error()));
                return Response::json(200, R"({"ready":true})");
              })});
  router.add({.path = "/metrics",
              .operation_id = "getMetrics",
              .tag = "node",
              .summary = "Figures for Prometheus",
              .answers = {{200, "Prometheus text format 0.0.4.", R"({"type":"string"})", "text/plain"}},
              .handler = answer_now([metrics = std::move(status.metrics)](Request&) -> Result<Response> {
                Response response = Response::text(200, metrics());
                response.content_type = "text/plain; version=0.0.4; charset=utf-8";
                return response;
              })});
}

}  // namespace millrace::http
