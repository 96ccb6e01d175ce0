#pragma once

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "bus/record_batch.h"
#include "proto/bus.pb.h"
#include "tests/bus/carriers.h"

namespace millrace::bus {

/// What tests of the pipeline itself share. The pipeline is made by open(), after a test has set `options`.
class PipelineFixture : public ::testing::Test {
 protected:
  using Table = store::Table;

  void open() { durable = std::make_unique<DurableLog>(clock, options); }
  CommitPipeline& log() { return durable->pipeline(); }

  Commit put(ByteView key, ByteView value) {
    Commit commit(home);
    commit.state.push_back({Table::kGroups, home.key(key), Bytes(value)});
    return commit;
  }
  std::optional<Row> get(ByteView key) { return *log().view()->get(Table::kGroups, home.key(key)); }
  std::string code_of(Commit commit) {
    auto result = log().submit_and_wait(std::move(commit));
    return std::string(result ? "" : result.error().code);
  }
  static Commit topic_commit(CommitLog& log, std::string_view name, uint32_t partitions, Uuid id,
                             const proto::TopicConfig& config = {}) {
    proto::TopicRow row;
    row.set_id(Bytes(id.view()));
    row.set_name(std::string(name));
    *row.mutable_config() = config;
    uint32_t first = log.allocate_partition_ids(partitions);
    for (uint32_t i = 0; i < partitions; ++i) row.add_partitions(first + i);
    Home topic = topic_home(name);
    Commit commit(topic);
    commit.state.push_back({Table::kTopics, Bytes(topic.prefix()), row.SerializeAsString()});
    return commit;
  }
  TopicPartition create_topic(std::string_view name) {
    Uuid id = Uuid::random();
    EXPECT_EQ(code_of(topic_commit(log(), name, 1, id)), "");
    return {id, 0};
  }
  static Bytes batch(int records, ByteView value = "value") {
    BatchBuilder builder;
    for (int i = 0; i < records; ++i) {
      RecordView record;
      record.value = value;
      builder.add(record);
    }
    return builder.finish();
  }

  /// Keeps the commit thread in an answer, so that what is submitted until open() makes one group.
  class Gate {
   public:
    explicit Gate(CommitLog& log, const Home& home) {
      Commit commit(home);
      commit.done = [this](const CommitResult&) {
        entered_.set_value();
        opened_.get_future().wait();
      };
      log.submit(std::move(commit));
      entered_.get_future().wait();
    }
    void open() { opened_.set_value(); }

   private:
    std::promise<void> entered_, opened_;
  };
  /// Submits; the code arrives in `codes` in the order of answers, with the commit's number.
  struct Answers {
    std::vector<std::pair<int, std::string>> codes;  ///< by the leader
    void submit(CommitLog& log, int number, Commit commit) {
      commit.done = [this, number](const CommitResult& result) {
        codes.emplace_back(number, std::string(result ? "" : result.error().code));
      };
      log.submit(std::move(commit));
    }
  };

  ManualClock clock;
  CommitPipeline::Options options;
  Home home = *Home::make(HomeKind::kGroup, "g");
  std::unique_ptr<DurableLog> durable;
};

}  // namespace millrace::bus
