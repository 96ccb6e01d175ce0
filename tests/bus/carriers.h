#pragma once

#include <memory>
#include <string_view>

#include "bus/commit_pipeline.h"
#include "bus/memory_commit_log.h"
#include "tests/support/temp_dir.h"

namespace millrace::bus {

/// What the contract is tested on: the model, and the pipeline with and without callers that lead.
enum class Carrier { kMemory, kLed, kThread };

inline std::string_view name_of(Carrier carrier) {
  return carrier == Carrier::kMemory ? "Memory" : carrier == Carrier::kLed ? "Led" : "Thread";
}

/// A store in a directory of its own and a pipeline on it; stop() and start() are a restart, crash() one without close.
class DurableLog {
 public:
  DurableLog(const Clock& clock, CommitPipeline::Options options) : clock_(clock), options_(std::move(options)) {
    start();
  }
  ~DurableLog() {
    pipeline_.reset();
    store_.reset();
  }

  void start() {
    store::Options options;
    options.prepared_wal_bytes = 64 << 10;  // As the daemon has it, but small.
    options.directory = directory_.path() / "data";
    options.reserve_bytes = reserve_bytes;
    options.file_system = file_system;
    options.free_bytes = free_bytes;
    auto store = store::Store::open(std::move(options));
    if (!store) throw std::runtime_error(to_string(store.error()));
    store_ = std::move(*store);
    auto pipeline = CommitPipeline::start(*store_, clock_, health_, options_);
    if (!pipeline) throw std::runtime_error(to_string(pipeline.error()));
    pipeline_ = std::move(*pipeline);
  }
  void stop() {
    if (auto status = pipeline_->close(); !status) throw std::runtime_error(to_string(status.error()));
    pipeline_.reset();
    if (auto status = store_->close(); !status) throw std::runtime_error(to_string(status.error()));
    store_.reset();
  }
  void crash() {
    pipeline_.reset();
    store_.reset();
  }

  CommitPipeline& pipeline() { return *pipeline_; }
  store::Store& store() { return *store_; }
  Health& health() { return health_; }

  /// For the next start().
  std::shared_ptr<rocksdb::FileSystem> file_system;
  std::function<uint64_t()> free_bytes;
  uint64_t reserve_bytes = 0;

 private:
  const Clock& clock_;
  const CommitPipeline::Options options_;
  tests::TempDir directory_;
  Health health_{SystemClock::instance()};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<CommitPipeline> pipeline_;
};

/// Its bounds are small, so that tests meet them.
class CarrierUnderTest {
 public:
  static constexpr size_t kMaxCommitBytes = 64u << 10;
  static constexpr size_t kMaxTopics = 4, kMaxPartitions = 12;
  static constexpr size_t kMaxIdempotencyKeys = 4, kMaxWatches = 8;

  CarrierUnderTest(Carrier carrier, const Clock& clock) {
    if (carrier == Carrier::kMemory) {
      MemoryCommitLog::Options options;
      options.max_commit_bytes = kMaxCommitBytes;
      options.max_topics = kMaxTopics;
      options.max_partitions = kMaxPartitions;
      options.max_idempotency_keys = kMaxIdempotencyKeys;
      options.max_watches = kMaxWatches;
      memory_ = std::make_unique<MemoryCommitLog>(clock, options);
      return;
    }
    CommitPipeline::Options options;
    options.max_commit_bytes = kMaxCommitBytes;
    options.log.max_topics = kMaxTopics;
    options.log.max_partitions = kMaxPartitions;
    options.max_idempotency_keys = kMaxIdempotencyKeys;
    options.max_watches = kMaxWatches;
    options.lead = carrier == Carrier::kLed;
    durable_ = std::make_unique<DurableLog>(clock, options);
  }
  CommitLog& log() { return memory_ ? static_cast<CommitLog&>(*memory_) : durable_->pipeline(); }

 private:
  std::unique_ptr<MemoryCommitLog> memory_;
  std::unique_ptr<DurableLog> durable_;
};

}  // namespace millrace::bus
