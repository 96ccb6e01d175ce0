#include "cli/table.h"

#include <algorithm>

#include "cli/json_text.h"

namespace millrace::cli {
namespace {

constexpr int kMaxLevels = 64;

std::string harmless(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

void flatten(std::string& out, const std::string& path, std::string_view json, int level) {
  auto below = [&](std::string_view name) { return path.empty() ? std::string(name) : path + "." + std::string(name); };
  if (auto members = json_members(json); members && !members->empty() && level < kMaxLevels) {
    for (const auto& [name, value] : *members) flatten(out, below(name), value, level + 1);
  } else if (auto elements = json_elements(json); elements && !elements->empty() && level < kMaxLevels) {
    for (size_t i = 0; i < elements->size(); ++i) flatten(out, below(std::to_string(i)), (*elements)[i], level + 1);
  } else {
    out += harmless(path.empty() ? json_scalar(json) : path + ": " + json_scalar(json)) + "\n";
  }
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += harmless(row[i]);
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string flattened(std::string_view json) {
  std::string out;
  size_t start = std::min(json.find_first_not_of(" \t\r\n"), json.size());
  json.remove_prefix(start);
  json = json.substr(0, json.find_last_not_of(" \t\r\n") + 1);
  flatten(out, "", json, 0);
  return out;
}

}  // namespace millrace::cli
