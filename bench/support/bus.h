#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/heartbeat.h"
#include "bus/commit_pipeline.h"
#include "http/event_loop.h"
#include "store/store.h"

namespace millrace::proto {
class TopicConfig;
}

namespace millrace::bench {

/// A record batch of so many records with values of so many bytes.
Bytes batch_of(int records, size_t value_bytes);

/// A pipeline on a fresh store as the daemon has it, with one topic. Whatever fails ends the bench with a message.
class Bus {
 public:
  static constexpr uint32_t kPartitions = 8;

  Bus(const std::filesystem::path& directory, store::Durability durability);
  ~Bus();

  /// Another topic, of kPartitions. Its UUID.
  Uuid add_topic(const std::string& name, const proto::TopicConfig& config);

  /// Returns when it is durable.
  void commit(uint32_t partition, Bytes batch);
  /// `done` is called on the pipeline's thread.
  void commit(uint32_t partition, Bytes batch, std::function<void()> done) {
    commit(this->partition(partition), std::move(batch), std::move(done));
  }
  void commit(const bus::TopicPartition& to, Bytes batch, std::function<void()> done);
  bus::TopicPartition partition(uint32_t number) const { return {topic_, number}; }
  bus::CommitPipeline& pipeline() { return *pipeline_; }
  store::Store& store() { return *store_; }
  Health& health() { return health_; }
  /// An I/O thread as the daemon has them.
  std::shared_ptr<http::EventLoop> start_loop(const std::string& name);

  /// What the pipeline did since the last call, in words.
  std::string groups();

 private:
  struct Groups {
    double count = 0, commits = 0, bytes = 0, write_ns = 0;
  };
  bus::Commit commit_of(const bus::TopicPartition& to, Bytes batch) const;

  std::filesystem::path directory_;
  Health health_{SystemClock::instance()};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<bus::CommitPipeline> pipeline_;
  Uuid topic_;
  const bus::Home home_ = bus::topic_home("bench");
  Groups groups_;
};

}  // namespace millrace::bench
