#include "http/target.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace millrace::http {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Printable in the sense above.
bool is_clean(std::string_view text) {
  while (!text.empty()) {
    size_t length = utf8_length(text);
    auto first = static_cast<uint8_t>(text[0]);
    if (length == 0 || first < 0x20 || first == 0x7f) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Levenshtein's distance, one row at a time.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  auto tail = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    uint8_t low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return tail(1, low, high) && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    uint8_t low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return tail(1, low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (!is_clean(out)) return std::nullopt;
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (size_t at = 0;;) {
    size_t end = text.find(separator, at);
    pieces.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    if (end == std::string_view::npos) return pieces;
    at = end + 1;
  }
}

VerbSplit split_verb(std::string_view last_segment) {
  size_t colon = last_segment.rfind(':');
  if (colon == std::string_view::npos) return {last_segment, {}};
  return {last_segment.substr(0, colon), last_segment.substr(colon + 1)};
}

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& candidates) {
  constexpr size_t kLongestName = 64;  // The distance is quadratic, and nobody means a known name by more.
  if (name.size() > kLongestName) return {};
  std::string_view best;
  size_t best_distance = 1 + std::max<size_t>(2, name.size() / 3);
  for (std::string_view candidate : candidates)
    if (size_t d = distance(name, candidate); d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  return best;
}

}  // namespace millrace::http
