#pragma once

#include <string>

#include "worker/processor.h"

namespace millrace::tests {

/// Passes records on after a while: each record of `input` sets a durable timer, due after as many milliseconds as its
/// key says, and when that fires the record's value is appended to `output`. A record reaches the output once.
class Delayer final : public worker::Processor {
 public:
  Delayer(std::string input, std::string output) : input_(std::move(input)), output_(std::move(output)) {}

  std::string_view name() const override { return "delayer"; }
  std::vector<std::string> inputs() const override { return {input_}; }
  std::unique_ptr<worker::PartitionProcessor> make(uint32_t partition, uint64_t epoch) const override;

 private:
  const std::string input_, output_;
};

}  // namespace millrace::tests
