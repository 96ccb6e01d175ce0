#include "config/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace millrace::config {
namespace {

/// Levenshtein's distance, case-blind.
size_t distance(std::string_view a, std::string_view b) {
  auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const Origin& origin) {
  if (origin.is_default()) return "default";
  return origin.line == 0 ? origin.source : fmt::format("{}:{}", origin.source, origin.line);
}

std::string to_string(const Fault& fault) {
  std::string text = to_string(fault.origin) + ": ";
  if (!fault.section.empty()) text += fmt::format("[{}] ", fault.section);
  if (!fault.key.empty())
    text += fault.key + ": ";
  else if (!fault.section.empty())
    text.replace(text.size() - 1, 1, ": ");
  return text + fault.message;
}

std::string to_string(const Faults& faults) {
  std::string text;
  for (const Fault& fault : faults) text += to_string(fault) + "\n";
  return text;
}

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  constexpr size_t kLongestName = 64;  // The work grows with the product of the lengths; no known name is longer.
  if (name.size() > kLongestName) return {};
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    size_t d = distance(name, candidate);
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace millrace::config
