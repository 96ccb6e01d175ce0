#include "tests/support/worker/delayer.h"

#include <charconv>

#include "bus/record_batch.h"
#include "worker/topics.h"

namespace millrace::tests {
namespace {

class DelayerPartition final : public worker::PartitionProcessor {
 public:
  DelayerPartition(uint32_t partition, std::string output) : partition_(partition), output_name_(std::move(output)) {}

  Status load(const bus::View& view) override {
    auto topic = worker::find_topic(view, output_name_);
    if (!topic) return tl::unexpected(std::move(topic.error()));
    output_ = {topic->id, partition_ % topic->partitions()};
    return {};
  }

  worker::StepResult step(const worker::StepInput& input) override {
    worker::StepDraft draft;
    for (const worker::Record& record : input.records) {
      const ByteView key = record.record.key.value_or("");
      int64_t delay_ms = 0;
      std::from_chars(key.data(), key.data() + key.size(), delay_ms);
      draft.timers.push_back(
          {input.now_ms + delay_ms, std::to_string(record.offset), Bytes(record.record.value.value_or(""))});
    }
    bus::BatchBuilder out;
    for (const worker::DueTimer& timer : input.timers) {
      bus::RecordView passed;
      passed.timestamp_ms = input.now_ms;
      passed.value = timer.payload;
      out.add(passed);
    }
    if (!out.empty()) draft.appends.push_back({output_, out.finish()});
    return draft;
  }

 private:
  const uint32_t partition_;
  const std::string output_name_;
  bus::TopicPartition output_;
};

}  // namespace

std::unique_ptr<worker::PartitionProcessor> Delayer::make(uint32_t partition, uint64_t) const {
  return std::make_unique<DelayerPartition>(partition, output_);
}

}  // namespace millrace::tests
