#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/groups.h"
#include "bus/record_batch.h"
#include "tests/bus/carriers.h"

namespace millrace::group {

/// Groups over one carrier, with a clock that tests move. On the durable one restart() opens everything anew.
class Node {
 public:
  Node(bus::Carrier carrier, ManualClock& clock, Coordinator::Options options)
      : clock_(clock), options_(std::move(options)) {
    bus::CommitPipeline::Options pipeline;
    pipeline.lead = carrier == bus::Carrier::kLed;
    if (carrier == bus::Carrier::kMemory)
      memory_ = std::make_unique<bus::MemoryCommitLog>(clock);
    else
      durable_ = std::make_unique<bus::DurableLog>(clock, pipeline);
    open();
  }
  ~Node() {
    if (durable_) durable_->crash();
  }
  /// As after a SIGKILL; in memory only what is derived is lost.
  void restart() {
    settle();
    close();
    if (durable_) {
      durable_->crash();
      durable_->start();
    }
    open();
  }

  bus::CommitLog& log() { return memory_ ? static_cast<bus::CommitLog&>(*memory_) : durable_->pipeline(); }
  Coordinator& coordinator() { return *coordinator_; }
  Consumers& consumers() { return *consumers_; }
  api::GroupsApi& groups() { return *groups_; }
  api::TopicsApi& topics() { return *topics_; }

  /// Everything submitted is answered: answers come in the order of the ring, and may lead to one more commit.
  void settle() {
    for (int i = 0; i < 4; ++i) {
      bus::Commit barrier(*bus::Home::make(bus::HomeKind::kUpgrade, ""));
      barrier.state.push_back({store::Table::kMeta, barrier.home.key("barrier"), Bytes("x")});
      if (auto done = log().submit_and_wait(std::move(barrier)); !done)
        throw std::runtime_error(to_string(done.error()));
    }
  }
  void pass(int64_t ms) {
    clock_.advance(std::chrono::milliseconds(ms));
    coordinator_->run_due();
    settle();
  }
  void create_topic(const std::string& name, int partitions) {
    topics_->create(R"({"name":")" + name + R"(","partitions":)" + std::to_string(partitions) + "}", std::nullopt,
                    [](const Result<std::string>& made) {
                      if (!made) throw std::runtime_error(to_string(made.error()));
                    });
    settle();
  }
  void delete_topic(const std::string& name) {
    topics_->remove(name, [](const Result<std::string>&) {});
    settle();
  }
  bus::TopicPartition at(const std::string& topic, uint32_t partition) {
    return {topics_->find(*log().view(), topic)->id, partition};
  }
  void produce(const bus::TopicPartition& to, int records) {
    bus::BatchBuilder builder;
    bus::RecordView record;
    record.timestamp_ms = clock_.wall_ms();
    record.value = "value";
    for (int i = 0; i < records; ++i) builder.add(record);
    bus::Commit commit(bus::topic_home("producer"));
    commit.appends.push_back({to, builder.finish()});
    if (auto done = log().submit_and_wait(std::move(commit)); !done) throw std::runtime_error(to_string(done.error()));
  }

  /// Result of a commit, by its code; "" is success.
  std::string commit(const std::string& group, const MemberIdentity& who, const bus::TopicPartition& at,
                     uint64_t offset, Bytes metadata = {}) {
    bus::ConsumedOffset one;
    one.from = at;
    one.next_offset = offset;
    one.metadata = std::move(metadata);
    std::string code = "no answer";
    coordinator_->commit(group, who, {one},
                         [&](const Status& status) { code = status ? "" : std::string(status.error().code); });
    settle();
    return code;
  }
  std::optional<CommittedOffset> committed(const std::string& group, const bus::TopicPartition& at) {
    return *coordinator_->offset(*log().view(), group, at);
  }
  std::string remove(const std::string& group) {
    std::string code = "no answer";
    coordinator_->remove(group, [&](const Status& status) { code = status ? "" : std::string(status.error().code); });
    settle();
    return code;
  }

 private:
  void open() {
    auto coordinator = Coordinator::start(log(), clock_, options_);
    if (!coordinator) throw std::runtime_error(to_string(coordinator.error()));
    coordinator_ = *std::move(coordinator);
    consumers_ = std::make_unique<Consumers>(*coordinator_, log());
    topics_ = std::make_unique<api::TopicsApi>(log(), clock_, api::TopicsApi::Options());
    groups_ = std::make_unique<api::GroupsApi>(log(), *topics_, *coordinator_, *consumers_);
  }
  void close() {
    groups_.reset();
    topics_.reset();
    consumers_.reset();
    coordinator_.reset();
  }

  ManualClock& clock_;
  const Coordinator::Options options_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Consumers> consumers_;
  std::unique_ptr<api::TopicsApi> topics_;
  std::unique_ptr<api::GroupsApi> groups_;
  std::unique_ptr<bus::MemoryCommitLog> memory_;
  std::unique_ptr<bus::DurableLog> durable_;
};

}  // namespace millrace::group
