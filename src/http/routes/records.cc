#include "http/routes/routes.h"

namespace millrace::http {
namespace {

constexpr auto kValueSchema =
    R"({"description":"{type, data}, or as a shorthand any JSON: a string stands for its bytes, null for none",
  "oneOf":[{"type":"object","required":["type","data"],"additionalProperties":false,"properties":{
  "type":{"enum":["BINARY","STRING","JSON"]},"data":{}}},{}]})";
constexpr auto kRecordSchema =
    R"({"type":"object","properties":{"partition":{"type":"integer"},"offset":{"type":"string"},
  "timestamp":{"type":["string","null"],"format":"date-time"},"timestampMs":{"type":"string"},
  "key":{},"value":{},"headers":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{}}}}}})";
constexpr auto kProduceSchema = R"({"type":"object","required":["records"],"additionalProperties":false,"properties":{
  "records":{"type":"array","minItems":1,"maxItems":10000,"items":{"type":"object","additionalProperties":false,"properties":{
  "key":{"$ref":"#/components/schemas/Value"},"value":{"$ref":"#/components/schemas/Value"},
  "headers":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},
  "value":{"$ref":"#/components/schemas/Value"}}}},"partition":{"type":"integer"},
  "timestamp":{"type":["integer","string"]}}}}}})";
constexpr auto kOffsetsSchema = R"({"type":"object","required":["offsets"],"properties":{"offsets":{"type":"array",
  "items":{"type":"object","properties":{"partition":{"type":"integer"},"offset":{"type":"string"}}}}}})";
constexpr auto kReadSchema =
    R"({"type":"object","required":["records","nextOffset","highWatermark","logStartOffset"],"properties":{
  "records":{"type":"array","items":{"$ref":"#/components/schemas/Record"}},"nextOffset":{"type":"string"},
  "highWatermark":{"type":"string"},"logStartOffset":{"type":"string"}}})";

/// One long poll: what is waited for, until records, the time, the client or the server end it. The watch and the
/// responder's callbacks keep it alive.
class LongPoll : public std::enable_shared_from_this<LongPoll> {
 public:
  LongPoll(api::RecordsApi& records, api::ReadRequest request, Responder responder)
      : records_(records), request_(std::move(request)), responder_(std::move(responder)) {}

  void start(bus::CommitLog& log, bus::WatchedOffset at, std::chrono::milliseconds wait) {
    // From now on the offset is fixed, however the read began.
    request_.offset = static_cast<int64_t>(at.offset);
    request_.timestamp_ms.reset();
    auto self = shared_from_this();
    responder_.on_cancel([self](CancelReason) { self->finish(); });
    responder_.after(wait, [self] { self->finish(); });
    // The wake-up may come on the thread that carries commits: the reading is done on the request's own.
    auto watch = log.watch({at}, [self] { self->responder_.post([self] { self->finish(); }); });
    if (!watch) return responder_.fail(watch.error());
    watch_ = *std::move(watch);
  }

 private:
  void finish() {
    if (finished_) return;
    finished_ = true;
    // Breaks the circle of the watch and this.
    watch_.reset();
    auto answer = records_.read(request_);
    if (answer)
      responder_.try_respond(Response::json(200, std::move(answer->json)));
    else
      responder_.respond(tl::unexpected(std::move(answer.error())));
  }

  api::RecordsApi& records_;
  api::ReadRequest request_;
  const Responder responder_;
  std::unique_ptr<bus::Watch> watch_;
  bool finished_ = false;  ///< the request's io thread only
};

void produce(api::RecordsApi& records, Request request, Responder responder) {
  std::optional<std::string> key;
  if (auto given = request.params.find_string("Idempotency-Key")) key = std::string(*given);
  records.produce(request.params.string("topic"), request.body, std::move(key),
                  [responder](Result<api::RecordsApi::Produced> produced) {
                    if (!produced) return responder.fail(produced.error());
                    Response response = Response::json(200, std::move(produced->json));
                    if (produced->replayed) response.headers.add("Idempotent-Replayed", "true");
                    responder.respond(std::move(response));
                  });
}

void read(api::RecordsApi& records, bus::CommitLog& log, Request request, Responder responder) {
  api::ReadRequest wanted;
  wanted.topic = request.params.string("topic");
  wanted.partition = static_cast<uint32_t>(request.params.integer("partition"));
  wanted.offset = request.params.find_integer("offset");
  if (auto text = request.params.find_string("timestamp")) {
    auto time = api::to_timestamp(api::Json(std::string(*text)), "");
    if (!time)
      return responder.fail({ErrorKind::kInvalidArgument, "INVALID_PARAMETER", "timestamp: " + time.error().message});
    if (wanted.offset)
      return responder.fail({ErrorKind::kInvalidArgument, "INVALID_PARAMETER", "give offset or timestamp, not both"});
    wanted.timestamp_ms = *time;
  }
  wanted.limit = static_cast<size_t>(request.params.integer("limit"));
  wanted.max_bytes = static_cast<size_t>(request.params.size("maxBytes"));
  const auto wait = request.params.duration("wait");
  auto answer = records.read(wanted);
  if (!answer) return responder.fail(answer.error());
  if (!answer->empty || wait.count() == 0) return responder.respond(Response::json(200, std::move(answer->json)));
  std::make_shared<LongPoll>(records, std::move(wanted), std::move(responder))->start(log, answer->at, wait);
}

}  // namespace

void add_record_routes(Router& router, api::RecordsApi& records, bus::CommitLog& log, RecordLimits limits) {
  router.add_schema("Value", kValueSchema);
  router.add_schema("Record", kRecordSchema);
  const Param topic = Param::string("topic", "The topic's name.").range(1, bus::kMaxTopicNameBytes);
  const Route::Problem unknown{ErrorKind::kNotFound, "UNKNOWN_TOPIC", "there is no such topic"};
  const Route::Problem no_partition{ErrorKind::kNotFound, "UNKNOWN_PARTITION", "the topic has no such partition"};
  router.add({.method = Method::kPost,
              .path = "/v1/topics/{topic}/records",
              .operation_id = "produceRecords",
              .tag = "records",
              .summary = "Appends records; all of them or none",
              .description = "One request is one atomic commit. It is answered when the records are on disk.",
              .params = {topic, Param::string("Idempotency-Key",
                                              "The same request under the same key is done once; a "
                                              "repeated one gets the first one's answer for 24 hours.")
                                    .range(1, api::kMaxIdempotencyKeyBytes)
                                    .in_header()},
              .body = BodyRule::kRequired,
              .request_schema = kProduceSchema,
              .answers = {{200, "Where each record lies, in the order of the request.", kOffsetsSchema}},
              .problems = {unknown,
                           no_partition,
                           {ErrorKind::kInvalidArgument, "INVALID_JSON", "the body is not strict JSON"},
                           {ErrorKind::kInvalidArgument, "MESSAGE_TOO_LARGE", "a record is over max.message.bytes"},
                           {ErrorKind::kInvalidArgument, "COMMIT_TOO_LARGE", "the records are too large together"},
                           {ErrorKind::kConflict, "IDEMPOTENCY_KEY_REUSED", "the key was used for another request"},
                           {ErrorKind::kExhausted, "COMMIT_QUEUE_FULL", "too many commits wait"},
                           {ErrorKind::kUnavailable, "DISK_RESERVE", "the disk is nearly full"},
                           {ErrorKind::kUnknown, "COMMIT_UNKNOWN", "durable or not, only a restart will tell"}},
              .handler = [&records](Request request, Responder responder) {
                produce(records, std::move(request), std::move(responder));
              }});
  router.add(
      {.path = "/v1/topics/{topic}/partitions/{partition}/records",
       .operation_id = "readRecords",
       .tag = "records",
       .summary = "Reads records of a partition from an offset or a time",
       .params = {topic,
                  Param::integer("partition", "The partition's number.").range(0, bus::kMaxPartitionsOfTopic - 1),
                  Param::integer("offset", "First offset to read; without it and timestamp the log's start."),
                  Param::string("timestamp", "First record at or after it: RFC 3339, or milliseconds since 1970."),
                  Param::integer("limit", "How many records at most.").range(1, 10'000).otherwise("500"),
                  Param::size("maxBytes", "Bytes of record batches at most; the first one always comes.")
                      .range(1, static_cast<int64_t>(limits.max_fetch_bytes))
                      .otherwise(std::to_string(std::min<size_t>(limits.max_fetch_bytes, 1 << 20)) + "B"),
                  Param::duration("wait", "When there is nothing yet, waits so long for records.")
                      .range(0, limits.max_wait.count())
                      .otherwise("0ms")},
       .answers = {{200, "Records, and where to go on.", kReadSchema}},
       .problems = {unknown,
                    no_partition,
                    {ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE",
                     "the offset is below the log's start or above the high watermark"},
                    {ErrorKind::kCorruption, "LOG_DAMAGED", "the stored bytes are not what was written"},
                    {ErrorKind::kUnsupported, "COMPRESSED_BATCH", "a Kafka client compressed the batch"},
                    {ErrorKind::kExhausted, "TOO_MANY_WATCHES", "too many clients wait"}},
       .handler = [&records, &log](Request request, Responder responder) {
         read(records, log, std::move(request), std::move(responder));
       }});
}

}  // namespace millrace::http
