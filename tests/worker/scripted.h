#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "worker/processor.h"

namespace millrace::worker {

/// A processor whose step is a function of the test. Reads topic "in".
class Scripted final : public Processor {
 public:
  using Step = std::function<StepResult(const StepInput&, const bus::Home&)>;
  explicit Scripted(Step step) : step_(std::move(step)) {}

  std::string_view name() const override { return "scripted"; }
  std::vector<std::string> inputs() const override { return {"in"}; }
  std::unique_ptr<PartitionProcessor> make(uint32_t partition, uint64_t) const override {
    return std::make_unique<Instance>(step_, home(partition));
  }

 private:
  class Instance final : public PartitionProcessor {
   public:
    Instance(const Step& step, bus::Home home) : step_(step), home_(std::move(home)) {}
    Status load(const bus::View&) override { return {}; }
    StepResult step(const StepInput& input) override { return step_(input, home_); }

   private:
    const Step& step_;
    const bus::Home home_;
  };
  const Step step_;
};

/// What a step says of itself, appended to a topic: a text, under a key.
inline bus::Append say(const bus::TopicPartition& to, const std::string& key, const std::string& text) {
  bus::RecordView record;
  record.key = key;
  record.value = text;
  bus::BatchBuilder batch;
  batch.add(record);
  return {to, batch.finish()};
}

}  // namespace millrace::worker
