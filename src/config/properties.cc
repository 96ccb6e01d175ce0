#include "config/properties.h"

#include <fmt/format.h>

#include <map>

#include "base/utf8.h"
#include "config/value.h"

namespace millrace::config {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  Properties parse() {
    if (text_.size() > kMaxFileBytes) {
      fault({}, {}, fmt::format("the file is larger than {}", format_size(kMaxFileBytes)));
      return std::move(result_);
    }
    if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff")) {
      fault({}, {}, "the file is UTF-16; save it as UTF-8");
      return std::move(result_);
    }
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
    while (!text_.empty()) {
      size_t end = text_.find('\n');
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      parse_line(trim(line));
    }
    return std::move(result_);
  }

 private:
  void parse_line(std::string_view line) {
    if (line.size() > kMaxLineBytes)
      return fault({}, {}, fmt::format("the line is longer than {} bytes", kMaxLineBytes));
    // Comments too: a file with stray NUL bytes is damaged or no text at all.
    if (line.find('\0') != std::string_view::npos) return fault({}, {}, "the line holds a NUL byte");
    if (line.empty() || line.front() == '#') return;
    if (line.front() == ';') return fault({}, {}, "comments start with '#', not ';'");
    if (line.front() == '[') return parse_header(line);
    parse_entry(line);
  }

  void parse_header(std::string_view line) {
    size_t close = line.find(']');
    std::string_view name = close == std::string_view::npos ? std::string_view{} : trim(line.substr(1, close - 1));
    if (name.empty() || close + 1 != line.size() || !fault_in_text(name).empty()) {
      // What follows belongs to a section nobody can name: one fault, not one for each of its keys.
      in_broken_section_ = true;
      return fault({}, {},
                   fmt::format("{} is no section header; write [name] and nothing else on the line", show(line)));
    }
    in_broken_section_ = false;
    section_ = name;
    auto [first, fresh] = headers_.emplace(section_, line_);
    if (fresh) result_.sections.push_back({section_, origin()});
    if (!fresh)
      fault(section_, {}, fmt::format("the section stands twice; it began on line {} already", first->second));
  }

  void parse_entry(std::string_view line) {
    size_t equals = line.find('=');
    std::string key(trim(line.substr(0, equals)));
    if (equals == std::string_view::npos)
      return fault(section_, {}, fmt::format("{} lacks a '='; write key = value", show(line)));
    if (key.empty()) return fault(section_, {}, fmt::format("{} has no key before the '='", show(line)));
    if (!fault_in_text(key).empty()) return fault(section_, {}, fmt::format("{} cannot be a key", show(key)));
    if (in_broken_section_) return;
    if (section_.empty()) return fault({}, key, "the key stands before the first [section]");
    std::string_view value = trim(line.substr(equals + 1));
    if (std::string wrong = fault_in_text(value); !wrong.empty()) return fault(section_, key, std::move(wrong));
    auto [first, fresh] = keys_.emplace(section_ + "." + key, line_);
    if (!fresh) return fault(section_, key, fmt::format("the key is set twice; line {} set it already", first->second));
    result_.entries.push_back({section_, std::move(key), std::string(value), origin()});
  }

  Origin origin() const { return {source_, line_}; }
  void fault(std::string section, std::string key, std::string message) {
    if (result_.faults.size() < kMaxFaults)
      result_.faults.push_back({origin(), std::move(section), std::move(key), std::move(message)});
  }

  std::string_view text_;
  const std::string& source_;
  Properties result_;
  std::string section_;
  bool in_broken_section_ = false;
  int line_ = 0;
  std::map<std::string, int> headers_;  ///< name -> line
  std::map<std::string, int> keys_;     ///< section.key -> line
};

}  // namespace

Properties parse_properties(std::string_view text, const std::string& source) {
  return Parser(text, source).parse();
}

std::string fault_in_text(std::string_view text) {
  if (text.size() > kMaxLineBytes) return fmt::format("the value is longer than {} bytes", kMaxLineBytes);
  for (char c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f)
      return fmt::format("{} holds a control character", show(text));
  if (!is_utf8(text)) return fmt::format("{} is not UTF-8", show(text));
  if (text.find(" #") != std::string_view::npos || text.find("\t#") != std::string_view::npos)
    return fmt::format("{} holds a '#' after a blank; comments stand on lines of their own", show(text));
  return {};
}

}  // namespace millrace::config
