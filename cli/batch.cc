#include "cli/batch.h"

#include <fmt/format.h>

#include "cli/start_position.h"

namespace millrace::cli {

bool Batch::fits(std::string_view record) const {
  if (lines_.empty()) return true;
  return lines_.size() < max_records_ && records_.size() + 1 + record.size() <= max_bytes_;
}

void Batch::add(std::string_view record, uint64_t line) {
  if (!records_.empty()) records_ += ',';
  records_.append(record);
  lines_.push_back(line);
}

std::string Batch::lines() const {
  if (lines_.empty()) return "no line";
  if (lines_.size() == 1) return fmt::format("line {}", lines_[0]);
  return fmt::format("lines {} to {}", lines_.front(), lines_.back());
}

uint64_t Batch::line_at(std::string_view pointer) const {
  constexpr std::string_view kPrefix = "/records/";
  if (!pointer.starts_with(kPrefix)) return 0;
  pointer.remove_prefix(kPrefix.size());
  auto index = parse_number(pointer.substr(0, pointer.find('/')));
  return index && *index < lines_.size() ? lines_[*index] : 0;
}

void Batch::clear() {
  records_.clear();
  lines_.clear();
}

}  // namespace millrace::cli
