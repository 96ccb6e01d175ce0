#include "http/routes/routes.h"

namespace millrace::http {
namespace {

constexpr auto kWorkersSchema = R"({"type":"object","required":["workers","processors"],"properties":{
  "workers":{"type":"array","items":{"type":"object","required":["id","state","partitions"],"properties":{
    "id":{"type":"string"},"state":{"type":"string"},"step":{"type":"string"},"stepAgeMs":{"type":"string"},
    "partitions":{"type":"array","items":{"type":"object","properties":{"processor":{"type":"string"},
      "partition":{"type":"integer"},"state":{"type":"string"},"epoch":{"type":"string"},"lag":{"type":"string"},
      "parked":{"type":"integer"},"deadLetters":{"type":"string"},"problem":{"type":"string"},
      "inputs":{"type":"array","items":{"type":"object","properties":{"topic":{"type":"string"},
        "position":{"type":"string"},"highWatermark":{"type":"string"}}}}}}}}}},
  "processors":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},
    "problem":{"type":"string"}}}}}})";

}  // namespace

void add_worker_routes(Router& router, api::WorkersApi& workers) {
  router.add({.path = "/v1/workers",
              .operation_id = "listWorkers",
              .tag = "workers",
              .summary = "Lists the workers, what each owns and is at",
              .answers = {{200, "The workers by id, and the processors that they run.", kWorkersSchema}},
              .handler = answer_now(
                  [&workers](Request&) -> Result<Response> { return Response::json(200, workers.list()); })});
  router.add({.method = Method::kPost,
              .path = "/v1/workers/{worker}:stop",
              .operation_id = "stopWorker",
              .tag = "workers",
              .summary = "Stops a worker, as a drill",
              .description = "Its partitions are taken over by the others at once, and a new worker takes its place.",
              .params = {Param::integer("worker", "The worker's id.").range(0, INT64_MAX)},
              .answers = {{204, "It leaves."}},
              .problems = {{ErrorKind::kNotFound, "UNKNOWN_WORKER", "there is no such worker (any more)"}},
              .handler = answer_now([&workers](Request& request) -> Result<Response> {
                MILLRACE_TRY(workers.stop(static_cast<uint64_t>(request.params.integer("worker"))));
                return Response::no_content();
              })});
}

}  // namespace millrace::http
