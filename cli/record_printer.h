#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/record_format.h"

namespace millrace::cli {

/// Prints records and counts them against the limit.
class RecordPrinter {
 public:
  static Outcome<RecordPrinter> create(const ConsumeCommand& command, bool json, Console& console);

  /// `record` is the record's JSON. Not to be called when done().
  Done print(std::string_view record) { return print(record, topic_); }
  Done print(std::string_view record, std::string_view topic);
  Done flush() { return console_->flush(); }
  bool done() const { return left_ == 0; }
  /// How many may still be printed.
  uint64_t left() const { return left_; }

 private:
  RecordPrinter(RecordFormat format, std::string topic, uint64_t limit, bool json, Console& console);

  RecordFormat format_;
  std::string topic_;
  uint64_t left_;
  bool json_;
  Console* console_;
  std::string text_;
};

}  // namespace millrace::cli
