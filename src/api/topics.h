#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/json.h"
#include "base/clock.h"
#include "bus/commit_log.h"
#include "bus/topic.h"

/// Topics as use cases. Answers are JSON text; nothing here blocks, so io threads may call.
namespace millrace::api {

/// Called exactly once with a JSON text (empty for "no content") or what went wrong; on any thread.
using Reply = std::function<void(Result<std::string>)>;

/// Owned by main; any thread.
class TopicsApi {
 public:
  struct Options {
    uint32_t default_partitions = 4;
    bus::TopicSettings defaults;
  };
  TopicsApi(bus::CommitLog& log, const Clock& clock, Options options)
      : log_(log), clock_(clock), options_(std::move(options)) {}

  /// {"name","partitions"?,"configs"?} -> the topic. Errors: kAlreadyExists TOPIC_EXISTS, those of the fields, of
  /// Commit.
  void create(std::string_view body, std::optional<std::string> idempotency_key, Reply reply);
  /// {"configs":{name: value | null}}: null goes back to the default. Errors: kNotFound UNKNOWN_TOPIC, kConflict
  /// TOPIC_CHANGED when it changed under us.
  void change(std::string_view name, std::string_view body, Reply reply);
  void remove(std::string_view name, Reply reply);

  Result<std::string> get(std::string_view name) const;
  /// By name, after `after`. {"topics":[..],"next":name?}
  Result<std::string> list(std::string_view after, size_t limit) const;
  /// {"partitions":[{"partition","logStartOffset","highWatermark","sizeBytes"}]}
  Result<std::string> partitions(std::string_view name) const;

  /// Errors: kNotFound UNKNOWN_TOPIC, kInvalidArgument INVALID_TOPIC_NAME.
  Result<bus::Topic> find(const bus::View& view, std::string_view name) const;

 private:
  struct Stored;
  Result<Stored> read(const bus::View& view, std::string_view name) const;
  std::string to_json(const bus::Topic& topic) const;

  bus::CommitLog& log_;
  const Clock& clock_;
  const Options options_;
};

}  // namespace millrace::api
