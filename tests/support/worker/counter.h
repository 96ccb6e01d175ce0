#pragma once

#include <functional>
#include <string>

#include "worker/processor.h"

namespace millrace::tests {

/// Counts records by key: reads topic `input`, keeps a row for each key, and says each new count in the compacted topic
/// `output`, key -> count, in the Commit that holds the row and the consumed offset. So the counts, the rows and the
/// topic agree after any crash. The example of docs/workers.md.
class Counter final : public worker::Processor {
 public:
  /// For tests: called for each record before it is counted; may fail the step by throwing.
  using Hook = std::function<void(const worker::Record&)>;
  Counter(std::string input, std::string output, Hook hook = {})
      : input_(std::move(input)), output_(std::move(output)), hook_(std::move(hook)) {}

  std::string_view name() const override { return "counter"; }
  std::vector<std::string> inputs() const override { return {input_}; }
  std::unique_ptr<worker::PartitionProcessor> make(uint32_t partition, uint64_t epoch) const override;

  /// What a row, or a record's value in the output, says.
  static std::string text_of(uint64_t count) { return std::to_string(count); }

 private:
  const std::string input_, output_;
  const Hook hook_;
};

}  // namespace millrace::tests
