#include "http/problem.h"
#include "http/routes/routes.h"
#include "http/sse.h"

namespace millrace::http {
namespace {

/// Bytes of record batches read at once, of each partition: a stream takes turns with everything else on its loop.
constexpr size_t kBytesPerTurn = 64 * 1024;

/// One client that follows a topic. Runs on its request's io thread: emits until the client's queue is full or
/// everything is read, then waits for the queue or the log. Its callbacks keep it alive, until the stream closes.
class TopicStream : public std::enable_shared_from_this<TopicStream> {
 public:
  TopicStream(api::RecordsApi& records, bus::CommitLog& log, bus::Topic topic, api::Positions positions,
              EventStream events)
      : records_(records),
        log_(log),
        topic_(std::move(topic)),
        positions_(std::move(positions)),
        events_(std::move(events)) {}

  void start() {
    auto self = shared_from_this();
    events_.on_close([self](CancelReason) { self->end(); });
    events_.on_writable([self] { self->run(); });
    run();
  }

 private:
  void run() {
    if (ended_) return;
    watch_.reset();
    bool full = false;
    auto all_read =
        records_.stream(topic_, positions_, kBytesPerTurn, [&](const std::string& json, const std::string& id) {
          full = !events_.send("record", id, json);
          return !full;
        });
    if (!all_read) {
      events_.send("problem", "", problem(all_read.error()).body);
      return end();
    }
    if (events_.closed()) return end();
    if (full) return;  // on_writable comes
    if (*all_read)
      wait();
    else
      events_.post([self = shared_from_this()] { self->run(); });
  }

  void wait() {
    std::vector<bus::WatchedOffset> offsets;
    offsets.reserve(positions_.size());
    for (const auto& [partition, offset] : positions_) offsets.push_back({{topic_.id, partition}, offset});
    // The wake-up may come on the thread that carries commits.
    auto watch =
        log_.watch(std::move(offsets), [self = shared_from_this()] { self->events_.post([self] { self->run(); }); });
    if (!watch) {
      events_.send("problem", "", problem(watch.error()).body);
      return end();
    }
    watch_ = *std::move(watch);
  }

  void end() {
    ended_ = true;
    watch_.reset();
    events_.close();
  }

  api::RecordsApi& records_;
  bus::CommitLog& log_;
  const bus::Topic topic_;
  api::Positions positions_;
  const EventStream events_;
  std::unique_ptr<bus::Watch> watch_;
  bool ended_ = false;
};

void follow(api::RecordsApi& records, api::TopicsApi& topics, bus::CommitLog& log, const Request& request,
            const Responder& responder) {
  std::string name(request.params.string("topic"));
  std::string from(request.last_event_id().value_or(request.params.string("from")));
  auto topic = topics.find(*log.view(), name);
  if (!topic) return responder.fail(topic.error());
  auto positions = records.start_positions(name, from);
  if (!positions) return responder.fail(positions.error());
  std::make_shared<TopicStream>(records, log, *std::move(topic), *std::move(positions), EventStream::start(responder))
      ->start();
}

}  // namespace

void add_stream_route(Router& router, api::RecordsApi& records, api::TopicsApi& topics, bus::CommitLog& log) {
  router.add(
      {.path = "/v1/topics/{topic}/stream",
       .operation_id = "streamRecords",
       .tag = "records",
       .summary = "Follows a topic as server-sent events",
       .description =
           "Events `record`, whose data is a Record and whose id is the position of every partition behind it, as "
           "0:12,1:9. A client that reconnects with Last-Event-ID misses and repeats nothing. Order is kept "
           "within a partition. An event `problem` precedes the end when the topic goes or its log is damaged.",
       .params = {Param::string("topic", "The topic's name.").range(1, bus::kMaxTopicNameBytes),
                  Param::string("from", "earliest, latest, or positions; Last-Event-ID goes before it.")
                      .range(1, 3500)
                      .otherwise("latest")},
       .answers = {{200, "The events.", R"({"type":"string"})", "text/event-stream"}},
       .problems = {{ErrorKind::kNotFound, "UNKNOWN_TOPIC", "there is no such topic"},
                    {ErrorKind::kInvalidArgument, "INVALID_POSITION", "`from` cannot be read"}},
       .handler = [&records, &topics, &log](Request request, Responder responder) {
         follow(records, topics, log, request, responder);
       }});
}

}  // namespace millrace::http
