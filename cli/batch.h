#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

/// Records on their way into one request: the body as it grows, and the input lines they came from.
class Batch {
 public:
  Batch(size_t max_records, size_t max_bytes) : max_records_(max_records), max_bytes_(max_bytes) {}

  /// False when it would go over a bound; an empty batch takes a record of any size.
  bool fits(std::string_view record) const;
  void add(std::string_view record, uint64_t line);
  bool full() const { return lines_.size() >= max_records_ || records_.size() >= max_bytes_; }
  bool empty() const { return lines_.empty(); }
  size_t records() const { return lines_.size(); }
  std::string body() const { return "{\"records\":[" + records_ + "]}"; }
  /// "line 7" or "lines 7 to 12".
  std::string lines() const;
  /// The line of the record that a JSON pointer ("/records/3/value") is about; 0 when it is about none.
  uint64_t line_at(std::string_view pointer) const;
  void clear();

 private:
  const size_t max_records_, max_bytes_;
  std::string records_;
  std::vector<uint64_t> lines_;
};

}  // namespace millrace::cli
