#include "bench/support/bus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "bus/record_batch.h"
#include "proto/bus.pb.h"

namespace millrace::bench {
namespace {

void check(const bus::CommitResult& result) {
  if (result) return;
  fmt::print(stderr, "bench: {}\n", to_string(result.error()));
  std::abort();
}

}  // namespace

Bytes batch_of(int records, size_t value_bytes) {
  bus::BatchBuilder builder;
  bus::RecordView record;
  Bytes value(value_bytes, 'v');
  record.value = value;
  record.timestamp_ms = SystemClock::instance().wall_ms();
  for (int i = 0; i < records; ++i) builder.add(record);
  return builder.finish();
}

Bus::Bus(const std::filesystem::path& directory, store::Durability durability) : directory_(directory / "bench-store") {
  std::filesystem::remove_all(directory_);
  store::Options options;
  options.directory = directory_;
  if (durability == store::Durability::kSync) options.prepared_wal_bytes = options.max_wal_bytes / 2 + (1 << 20);
  store_ = std::move(store::Store::open(options).value());
  bus::CommitPipeline::Options pipeline;
  pipeline.durability = durability;
  pipeline.log.topic_defaults.max_message_bytes = 8 << 20;
  pipeline_ = std::move(bus::CommitPipeline::start(*store_, SystemClock::instance(), health_, pipeline).value());
  topic_ = add_topic("bench", {});
}

Uuid Bus::add_topic(const std::string& name, const proto::TopicConfig& config) {
  proto::TopicRow row;
  const Uuid id = Uuid::random();
  row.set_id(Bytes(id.view()));
  row.set_name(name);
  *row.mutable_config() = config;
  for (uint32_t i = 0; i < kPartitions; ++i) row.add_partitions(pipeline_->allocate_partition_ids(1));
  const bus::Home home = bus::topic_home(name);
  bus::Commit commit(home);
  commit.state.push_back({store::Table::kTopics, Bytes(home.prefix()), row.SerializeAsString()});
  check(pipeline_->submit_and_wait(std::move(commit)));
  return id;
}

Bus::~Bus() {
  pipeline_.reset();
  store_.reset();
  std::filesystem::remove_all(directory_);
}

bus::Commit Bus::commit_of(const bus::TopicPartition& to, Bytes batch) const {
  bus::Commit commit(home_);
  commit.appends.push_back({to, std::move(batch)});
  return commit;
}

void Bus::commit(uint32_t partition, Bytes batch) {
  check(pipeline_->submit_and_wait(commit_of(this->partition(partition), std::move(batch))));
}

void Bus::commit(const bus::TopicPartition& to, Bytes batch, std::function<void()> done) {
  bus::Commit commit = commit_of(to, std::move(batch));
  commit.done = [done = std::move(done)](bus::CommitResult result) {
    check(result);
    done();
  };
  pipeline_->submit(std::move(commit));
}

std::shared_ptr<http::EventLoop> Bus::start_loop(const std::string& name) {
  auto loop = std::make_shared<http::EventLoop>(name);
  loop->start(health_);
  return loop;
}

std::string Bus::groups() {
  const bus::CommitStats& stats = pipeline_->stats();
  const Groups now{static_cast<double>(stats.groups.load()), static_cast<double>(stats.accepted.load()),
                   static_cast<double>(stats.bytes.load()), static_cast<double>(stats.write_ns.sum())};
  const Groups before = std::exchange(groups_, now);
  const double count = std::max(1.0, now.count - before.count);
  return fmt::format("{:.0f} groups of {:.1f} commits and {:.1f} kB, written in {:.0f} us", count,
                     (now.commits - before.commits) / count, (now.bytes - before.bytes) / count / 1e3,
                     (now.write_ns - before.write_ns) / count / 1e3);
}

}  // namespace millrace::bench
