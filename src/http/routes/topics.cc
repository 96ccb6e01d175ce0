#include "http/routes/routes.h"

namespace millrace::http {
namespace {

constexpr auto kTopicSchema =
    R"({"type":"object","required":["name","id","partitions","configs","createdAt"],"properties":{
  "name":{"type":"string"},"id":{"type":"string","format":"uuid"},"partitions":{"type":"integer"},
  "configs":{"type":"object","additionalProperties":{"type":"string"}},"createdAt":{"type":"string","format":"date-time"}}})";
constexpr auto kTopic = R"({"$ref":"#/components/schemas/Topic"})";
constexpr auto kConfigs =
    R"({"type":"object","description":"Kafka's topic configs by name; null goes back to the default",
  "additionalProperties":{"type":["string","integer","null"]}})";

Param topic_param() {
  return Param::string("topic", "The topic's name.").range(1, bus::kMaxTopicNameBytes);
}

Route::Problem unknown_topic() {
  return {ErrorKind::kNotFound, "UNKNOWN_TOPIC", "there is no such topic"};
}

api::Reply reply_with(int status, Responder responder) {
  return [status, responder](Result<std::string> result) {
    if (!result) return responder.fail(result.error());
    if (result->empty()) return responder.respond(Response::no_content());
    responder.respond(Response::json(status, *std::move(result)));
  };
}

Handler answer_json(std::function<Result<std::string>(Request&)> fn) {
  return answer_now([fn = std::move(fn)](Request& request) -> Result<Response> {
    auto json = fn(request);
    if (!json) return tl::unexpected(std::move(json.error()));
    return Response::json(200, *std::move(json));
  });
}

void add_collection(Router& router, api::TopicsApi& topics) {
  router.add(
      {.path = "/v1/topics",
       .operation_id = "listTopics",
       .tag = "topics",
       .summary = "Lists topics by name",
       .params = {Param::integer("limit", "How many at most.").range(1, 1000).otherwise("100"),
                  Param::string("after", "Only topics whose name is greater.").range(1, bus::kMaxTopicNameBytes)},
       .answers = {{200, "Topics, and `next` to pass as `after` when there are more.",
                    R"({"type":"object","required":["topics"],"properties":{
                             "topics":{"type":"array","items":{"$ref":"#/components/schemas/Topic"}},"next":{"type":"string"}}})"}},
       .problems = {{ErrorKind::kInvalidArgument, "INVALID_TOPIC_NAME", "`after` is no topic name"}},
       .handler = answer_json([&topics](Request& request) {
         return topics.list(request.params.find_string("after").value_or(""),
                            static_cast<size_t>(request.params.integer("limit")));
       })});
  router.add(
      {.method = Method::kPost,
       .path = "/v1/topics",
       .operation_id = "createTopic",
       .tag = "topics",
       .summary = "Creates a topic",
       .params = {Param::string("Idempotency-Key", "The same request under the same key is done once.")
                      .range(1, api::kMaxIdempotencyKeyBytes)
                      .in_header()},
       .body = BodyRule::kRequired,
       .request_schema = std::string(R"({"type":"object","required":["name"],"additionalProperties":false,"properties":{
         "name":{"type":"string"},"partitions":{"type":"integer","minimum":1,"maximum":10000},"configs":)") +
                         kConfigs + "}}",
       .answers = {{201, "The topic.", kTopic}},
       .problems = {{ErrorKind::kAlreadyExists, "TOPIC_EXISTS", "there is a topic of that name"},
                    {ErrorKind::kConflict, "IDEMPOTENCY_KEY_REUSED", "the key was used for another request"},
                    {ErrorKind::kInvalidArgument, "INVALID_CONFIG", "a config's value is out of range"},
                    {ErrorKind::kExhausted, "TOO_MANY_TOPICS", "the node's bound is reached"}},
       .handler = [&topics](Request request, Responder responder) {
         std::optional<std::string> key;
         if (auto given = request.params.find_string("Idempotency-Key")) key = std::string(*given);
         topics.create(request.body, std::move(key), reply_with(201, std::move(responder)));
       }});
}

}  // namespace

void add_topic_routes(Router& router, api::TopicsApi& topics) {
  router.add_schema("Topic", kTopicSchema);
  add_collection(router, topics);
  router.add(
      {.path = "/v1/topics/{topic}",
       .operation_id = "getTopic",
       .tag = "topics",
       .summary = "Shows a topic",
       .params = {topic_param()},
       .answers = {{200, "The topic.", kTopic}},
       .problems = {unknown_topic()},
       .handler = answer_json([&topics](Request& request) { return topics.get(request.params.string("topic")); })});
  router.add(
      {.method = Method::kPatch,
       .path = "/v1/topics/{topic}",
       .operation_id = "changeTopic",
       .tag = "topics",
       .summary = "Changes a topic's configs",
       .params = {topic_param()},
       .body = BodyRule::kRequired,
       .request_schema =
           std::string(R"({"type":"object","required":["configs"],"properties":{"configs":)") + kConfigs + "}}",
       .consumes = {"application/json", "application/merge-patch+json"},
       .answers = {{200, "The topic as it is now.", kTopic}},
       .problems = {unknown_topic(), {ErrorKind::kConflict, "TOPIC_CHANGED", "somebody else changed it meanwhile"}},
       .handler = [&topics](Request request, Responder responder) {
         topics.change(request.params.string("topic"), request.body, reply_with(200, std::move(responder)));
       }});
  router.add({.method = Method::kDelete,
              .path = "/v1/topics/{topic}",
              .operation_id = "deleteTopic",
              .tag = "topics",
              .summary = "Deletes a topic and its records",
              .params = {topic_param()},
              .answers = {{204, "It is gone."}},
              .problems = {unknown_topic()},
              .handler = [&topics](Request request, Responder responder) {
                topics.remove(request.params.string("topic"), reply_with(204, std::move(responder)));
              }});
  router.add({.path = "/v1/topics/{topic}/partitions",
              .operation_id = "listPartitions",
              .tag = "topics",
              .summary = "Lists a topic's partitions with their offsets and sizes",
              .params = {topic_param()},
              .answers = {{200, "The partitions.", R"({"type":"object","required":["partitions"],"properties":{
                "partitions":{"type":"array","items":{"type":"object","properties":{"partition":{"type":"integer"},
                "logStartOffset":{"type":"string"},"highWatermark":{"type":"string"},"sizeBytes":{"type":"string"}}}}}})"}},
              .problems = {unknown_topic()},
              .handler = answer_json(
                  [&topics](Request& request) { return topics.partitions(request.params.string("topic")); })});
}

}  // namespace millrace::http
