#include "cli/json_text.h"

#include <nlohmann/json.hpp>

namespace millrace::cli {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

void skip_space(std::string_view text, size_t& at) {
  while (at < text.size() && kSpace.find(text[at]) != std::string_view::npos) ++at;
}

// The end of the string that starts at `at` with its quote.
size_t string_end(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

// The end of the value that starts at `at`.
size_t value_end(std::string_view text, size_t at) {
  size_t depth = 0;
  while (at < text.size()) {
    char c = text[at];
    if (c == '"') {
      at = string_end(text, at);
      if (depth == 0) return at;
      continue;
    }
    bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
    if (depth == 0 && (closes || c == ',' || kSpace.find(c) != std::string_view::npos)) return at;
    if (opens) ++depth;
    ++at;
    if (closes && --depth == 0) return at;
  }
  return at;
}

// Steps behind the comma, if there is one.
void skip_comma(std::string_view text, size_t& at) {
  skip_space(text, at);
  if (at < text.size() && text[at] == ',') ++at;
  skip_space(text, at);
}

}  // namespace

bool is_json(std::string_view text) {
  return nlohmann::json::accept(text);
}

std::optional<JsonMembers> json_members(std::string_view text) {
  size_t at = 0;
  skip_space(text, at);
  if (at >= text.size() || text[at] != '{') return std::nullopt;
  JsonMembers members;
  skip_space(text, ++at);
  while (at < text.size() && text[at] == '"') {
    size_t end = string_end(text, at);
    std::string name = json_scalar(text.substr(at, end - at));
    at = text.find(':', end);
    if (at == std::string_view::npos) return std::nullopt;
    skip_space(text, ++at);
    end = value_end(text, at);
    members.emplace_back(std::move(name), text.substr(at, end - at));
    at = end;
    skip_comma(text, at);
  }
  return members;
}

std::optional<std::vector<std::string_view>> json_elements(std::string_view text) {
  size_t at = 0;
  skip_space(text, at);
  if (at >= text.size() || text[at] != '[') return std::nullopt;
  std::vector<std::string_view> elements;
  skip_space(text, ++at);
  while (at < text.size() && text[at] != ']') {
    size_t end = value_end(text, at);
    if (end == at) return std::nullopt;
    elements.push_back(text.substr(at, end - at));
    at = end;
    skip_comma(text, at);
  }
  return elements;
}

std::string_view json_member(const JsonMembers& members, std::string_view name) {
  for (const auto& [key, value] : members)
    if (key == name) return value;
  return {};
}

std::string json_scalar(std::string_view text) {
  if (!text.starts_with('"')) return std::string(text);
  if (text.find('\\') == std::string_view::npos) return std::string(text.substr(1, text.size() - 2));
  auto value = nlohmann::json::parse(text, nullptr, false);
  return value.is_string() ? value.get<std::string>() : std::string();
}

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  size_t clean = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text.substr(clean, i - clean));
    clean = i + 1;
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i];
    } else {
      out.append("\\u00");
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  out.append(text.substr(clean)).append("\"");
}

}  // namespace millrace::cli
