#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace millrace::cli {

/// Prints a record as --format says, in kcat's letters: %s value, %k key, %t topic, %p partition, %o offset, %T time in
/// milliseconds, %h headers (name=value,...), %S and %K sizes (-1 for none), %%. What is absent prints nothing.
class RecordFormat {
 public:
  /// Errors: kInvalidArgument INVALID_FORMAT, naming the letter.
  static Result<RecordFormat> parse(std::string_view format);

  /// `record` is the JSON of an answer. Errors: kInvalidArgument INVALID_RECORD.
  Status append(std::string& out, std::string_view topic, std::string_view record) const;

 private:
  struct Part {
    char letter;  ///< 0: `text` itself
    std::string text;
  };
  std::vector<Part> parts_;
};

}  // namespace millrace::cli
