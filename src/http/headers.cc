#include "http/headers.h"

#include <algorithm>

namespace millrace::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool iequals(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

void Headers::add(std::string_view name, std::string_view value) {
  auto at = static_cast<uint32_t>(text_.size());
  auto name_size = static_cast<uint32_t>(name.size());
  text_.append(name).append(value);
  entries_.push_back({at, name_size, at + name_size, static_cast<uint32_t>(value.size())});
}

void Headers::set(std::string_view name, std::string_view value) {
  std::erase_if(entries_, [&](const Entry& entry) { return iequals(view(entry.name_at, entry.name_size), name); });
  add(name, value);
}

std::optional<std::string_view> Headers::find(std::string_view wanted) const {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (iequals(name(i), wanted)) return value(i);
  return std::nullopt;
}

size_t Headers::count(std::string_view wanted) const {
  size_t found = 0;
  for (size_t i = 0; i < entries_.size(); ++i) found += iequals(name(i), wanted) ? 1 : 0;
  return found;
}

void Headers::reserve(size_t bytes, size_t fields) {
  text_.reserve(bytes);
  entries_.reserve(fields);
}

void Headers::clear() {
  text_.clear();
  entries_.clear();
}

}  // namespace millrace::http
