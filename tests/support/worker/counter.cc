#include "tests/support/worker/counter.h"

#include <unordered_map>

#include "worker/topics.h"

namespace millrace::tests {
namespace {

using store::Table;

class CounterPartition final : public worker::PartitionProcessor {
 public:
  CounterPartition(bus::Home home, uint32_t partition, std::string output, const Counter::Hook& hook)
      : home_(std::move(home)), partition_(partition), output_name_(std::move(output)), hook_(hook) {}

  Status load(const bus::View& view) override {
    auto topic = worker::find_topic(view, output_name_);
    if (!topic) return tl::unexpected(std::move(topic.error()));
    output_ = {topic->id, partition_ % topic->partitions()};
    return {};
  }

  worker::StepResult step(const worker::StepInput& input) override {
    worker::StepDraft draft;
    bus::BatchBuilder out;
    for (const worker::Record& record : input.records) {
      if (hook_) hook_(record);
      const Bytes key(record.record.key.value_or(""));
      auto count = count_of(key, input.view);
      if (!count) return tl::unexpected(worker::StepFailure(std::move(count.error())));
      const std::string text = Counter::text_of(pending_[key] = *count + 1);
      bus::RecordView said;
      said.timestamp_ms = input.now_ms;
      said.key = key;
      said.value = text;
      out.add(said);
    }
    for (const auto& [key, count] : pending_)
      draft.state.push_back({Table::kNodeState, home_.key(key), Counter::text_of(count)});
    if (!out.empty()) draft.appends.push_back({output_, out.finish()});
    return draft;
  }

  void committed(const bus::CommitReceipt&) override {
    if (counts_.size() + pending_.size() > kMaxCached) counts_.clear();
    for (const auto& [key, count] : pending_) counts_[key] = count;
    pending_.clear();
  }
  void dropped() override { pending_.clear(); }

 private:
  static constexpr size_t kMaxCached = 100'000;

  Result<uint64_t> count_of(const Bytes& key, const bus::View& view) {
    if (auto pending = pending_.find(key); pending != pending_.end()) return pending->second;
    if (auto cached = counts_.find(key); cached != counts_.end()) return cached->second;
    auto row = view.get(Table::kNodeState, home_.key(key));
    if (!row) return tl::unexpected(std::move(row.error()));
    return *row ? std::stoull((*row)->value) : 0;
  }

  const bus::Home home_;
  const uint32_t partition_;
  const std::string output_name_;
  const Counter::Hook& hook_;
  bus::TopicPartition output_;
  std::unordered_map<Bytes, uint64_t> counts_;   ///< durable
  std::unordered_map<Bytes, uint64_t> pending_;  ///< of the step under way
};

}  // namespace

std::unique_ptr<worker::PartitionProcessor> Counter::make(uint32_t partition, uint64_t) const {
  return std::make_unique<CounterPartition>(home(partition), partition, output_, hook_);
}

}  // namespace millrace::tests
