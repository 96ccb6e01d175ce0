#include "config/reference.h"

#include <fmt/format.h>

#include "config/key.h"

namespace millrace::config {
namespace {

/// "# " lines of at most 100 characters.
std::string comment(std::string_view text) {
  constexpr size_t kWidth = 100;
  std::string out, line = "#";
  while (!text.empty()) {
    size_t blank = text.find(' ');
    std::string_view word = text.substr(0, blank);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    if (line.size() > 1 && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = "#";
    }
    line += " " + std::string(word);
  }
  return out + line + "\n";
}

std::string default_of(const Key& key) {
  return key.write(Config{});
}

/// The type and range in words: "duration, 1s to 10m".
std::string kind_of(const Key& key) {
  return key.range.empty() ? key.type : key.type + ", " + key.range;
}

}  // namespace

std::string render_properties_file() {
  std::string out =
      "# Configuration of millraced. Every key is here with its default; uncomment a line to change it.\n"
      "# Durations: ms, s, m, h, d. Sizes: B, KB, MB, GB, TB; 1 KB is 1024 B. Thousands may be set apart: 4'096.\n"
      "# Comments stand on lines of their own. Check with: millraced --config FILE --check-config\n";
  for (const Section& section : sections()) {
    out += fmt::format("\n\n{}[{}]\n", comment(section.description), section.name);
    for (const Key& key : section.keys) {
      std::string text = fmt::format("{} ({}{})", key.description, kind_of(key), key.reloadable ? "; reloadable" : "");
      if (!key.empty_means.empty()) text += fmt::format(" Empty: {}.", key.empty_means);
      std::string value = default_of(key);
      out += fmt::format("\n{}#{} ={}{}\n", comment(text), key.name, value.empty() ? "" : " ", value);
    }
  }
  return out;
}

std::string render_reference() {
  std::string out;
  for (const Section& section : sections()) {
    out += fmt::format("\n### [{}]\n\n{}\n\n| key | default | type and range | what it does |\n|---|---|---|---|\n",
                       section.name, section.description);
    for (const Key& key : section.keys) {
      std::string value = default_of(key);
      std::string shown = value.empty() ? key.empty_means : "`" + value + "`";
      std::string text = key.description;
      if (!value.empty() && !key.empty_means.empty()) text += fmt::format(" Empty: {}.", key.empty_means);
      if (key.reloadable) text += " **Reloadable.**";
      out += fmt::format("| `{}` | {} | {} | {} |\n", key.name, shown, kind_of(key), text);
    }
  }
  return out;
}

}  // namespace millrace::config
