#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bus/partitioner.h"
#include "bus/record_batch.h"
#include "tests/bus/carriers.h"
#include "tests/support/worker/counter.h"
#include "worker/topics.h"
#include "worker/worker_pool.h"

namespace millrace::worker {

/// A log on either carrier, topics, and what is in them.
class Log {
 public:
  Log(bus::Carrier carrier, const Clock& clock) : clock_(clock) {
    if (carrier == bus::Carrier::kMemory) {
      memory_ = std::make_unique<bus::MemoryCommitLog>(clock);
      return;
    }
    bus::CommitPipeline::Options options;
    options.durability = store::Durability::kAsync;  // No power is cut here.
    options.lead = carrier == bus::Carrier::kLed;
    durable_ = std::make_unique<bus::DurableLog>(clock, options);
  }
  bus::CommitLog& get() { return memory_ ? static_cast<bus::CommitLog&>(*memory_) : durable_->pipeline(); }
  bus::CommitLog* operator->() { return &get(); }
  bus::DurableLog& durable() { return *durable_; }
  bus::MemoryCommitLog& memory() { return *memory_; }

  bus::Topic make_topic(const std::string& name, uint32_t partitions, const std::string& cleanup = "delete") {
    auto made = ensure_topic(get(), clock_, name, partitions, cleanup);
    EXPECT_TRUE(made) << to_string(made.error());
    return topic(name);
  }
  bus::Topic topic(const std::string& name) { return find_topic(*get().view(), name).value(); }

  /// Each record to the partition of its key.
  void produce(const std::string& name, const std::vector<std::pair<std::string, std::string>>& records) {
    const bus::Topic to = topic(name);
    bus::Commit commit(bus::topic_home(name));
    std::map<uint32_t, bus::BatchBuilder> batches;
    for (const auto& [key, value] : records) {
      bus::RecordView record;
      record.key = key;
      record.value = value;
      record.timestamp_ms = clock_.wall_ms();
      batches[bus::partition_of_key(key, to.partitions())].add(record);
    }
    for (auto& [partition, batch] : batches) commit.appends.push_back({{to.id, partition}, batch.finish()});
    auto done = get().submit_and_wait(std::move(commit));
    ASSERT_TRUE(done) << to_string(done.error());
  }

  struct Read {
    std::string key, value;
    std::map<std::string, std::string> headers;
  };
  std::vector<Read> read(const std::string& name, uint32_t partition) {
    std::vector<Read> all;
    auto view = get().view();
    const bus::TopicPartition from{topic(name).id, partition};
    for (uint64_t offset = 0; offset < view->partition(from)->high_watermark;) {
      auto fetched = fetch_records(*view, {name, from, {}}, offset, 1'000'000, 1 << 20).value();
      for (const bus::RecordView& record : fetched.records) {
        Read one{std::string(record.key.value_or("")), std::string(record.value.value_or("")), {}};
        for (const auto& header : record.headers)
          one.headers[std::string(header.name)] = std::string(header.value.value_or(""));
        all.push_back(std::move(one));
      }
      offset = fetched.next_offset;
    }
    return all;
  }
  std::vector<Read> read(const std::string& name) {
    std::vector<Read> all;
    for (uint32_t p = 0; p < topic(name).partitions(); ++p)
      for (auto& record : read(name, p)) all.push_back(std::move(record));
    return all;
  }
  uint64_t records_in(const std::string& name) {
    uint64_t count = 0;
    auto view = get().view();
    const bus::Topic counted = topic(name);
    for (uint32_t p = 0; p < counted.partitions(); ++p) count += view->partition({counted.id, p})->high_watermark;
    return count;
  }

  /// Waits until the topic holds so many records.
  void await_records(const std::string& name, uint64_t count) {
    const bus::Topic awaited = topic(name);
    for (;;) {
      auto view = get().view();
      uint64_t there = 0;
      std::vector<bus::WatchedOffset> offsets;
      for (uint32_t p = 0; p < awaited.partitions(); ++p) {
        offsets.push_back({{awaited.id, p}, view->partition({awaited.id, p})->high_watermark});
        there += offsets.back().offset;
      }
      if (there >= count) return;
      struct Signal {
        std::mutex mutex;
        std::condition_variable changed;
        bool is_set = false;
      };
      auto signal = std::make_shared<Signal>();
      auto watch = get().watch(offsets, [signal] {
        std::lock_guard lock(signal->mutex);
        signal->is_set = true;
        signal->changed.notify_one();
      });
      ASSERT_TRUE(watch);
      std::unique_lock lock(signal->mutex);
      signal->changed.wait(lock, [&] { return signal->is_set; });
    }
  }

 private:
  const Clock& clock_;
  std::unique_ptr<bus::MemoryCommitLog> memory_;
  std::unique_ptr<bus::DurableLog> durable_;
};

/// Waits until `ready`: for what nothing announces. Gives the core away in between.
template <typename Ready>
void await(Ready&& ready) {
  while (!ready()) std::this_thread::yield();
}

inline std::string carrier_name(const ::testing::TestParamInfo<bus::Carrier>& info) {
  return std::string(bus::name_of(info.param));
}

}  // namespace millrace::worker
