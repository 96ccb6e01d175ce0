#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/heartbeat.h"
#include "base/mutex.h"
#include "http/server.h"
#include "http/sse.h"

namespace millrace::cli::tests {

/// What the client talks to in tests: the API's paths over the real HTTP server, records in memory, and faults on
/// demand. Any thread.
class FakeNode {
 public:
  FakeNode();
  ~FakeNode();

  std::string url() const { return server_->urls().at(0); }
  uint16_t port() const { return server_->port(); }

  /// A topic with that many partitions.
  void add_topic(const std::string& name, size_t partitions = 1);
  /// A record as the node would show it, at the end of the partition. `value` is an envelope.
  void add_record(const std::string& topic, size_t partition, const std::string& value,
                  const std::string& key = "null");
  void set_ready(bool ready);
  /// The next requests to append are answered so, and do nothing.
  void refuse_appends(int times, Error with);

  struct Append {
    std::string key;
    std::string body;
  };
  /// Every request to append that came, also repetitions and those that were refused.
  std::vector<Append> appends() const;
  /// The data of every value of the topic, by partition and offset.
  std::vector<std::string> values(const std::string& topic) const;
  /// Bodies of requests to create or alter topics.
  std::vector<std::string> topic_bodies() const;

  struct Event {
    std::string id;
    std::string data;
  };
  /// What the next connection to the stream gets before it is ended; the one after the last stays open and silent.
  void script_stream(std::vector<Event> events);
  /// The next connection to the stream gets these and stays open.
  void script_open_stream(std::vector<Event> events);
  struct StreamRequest {
    std::string from;
    std::string last_event_id;
  };
  std::vector<StreamRequest> stream_requests() const;
  void wait_for_stream_requests(size_t count);

  /// A record event's data.
  static std::string record_event(size_t partition, size_t offset, const std::string& text);

 private:
  struct Topic {
    std::vector<std::vector<std::string>> partitions;  ///< records as JSON
    std::string configs = "{}";
  };
  struct Script {
    std::vector<Event> events;
    bool stays = false;
  };

  void add_topic_routes(http::Router& router);
  void add_record_routes(http::Router& router);
  void add_node_routes(http::Router& router);
  Result<http::Response> append(http::Request& request);
  Result<http::Response> read(http::Request& request);
  void stream(http::Request request, http::Responder responder);
  Result<Topic*> find(std::string_view name) REQUIRES(mutex_);
  std::string topic_json(const std::string& name, const Topic& topic) const;

  Health health_{SystemClock::instance()};
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Topic> topics_ GUARDED_BY(mutex_);
  std::map<std::string, std::string> answers_ GUARDED_BY(mutex_);  ///< by idempotency key
  std::vector<Append> appends_ GUARDED_BY(mutex_);
  std::vector<std::string> topic_bodies_ GUARDED_BY(mutex_);
  std::deque<Error> refusals_ GUARDED_BY(mutex_);
  std::deque<Script> scripts_ GUARDED_BY(mutex_);
  std::vector<StreamRequest> stream_requests_ GUARDED_BY(mutex_);
  std::vector<http::EventStream> open_streams_ GUARDED_BY(mutex_);
  bool ready_ GUARDED_BY(mutex_) = true;
  std::unique_ptr<http::Server> server_;
};

}  // namespace millrace::cli::tests
