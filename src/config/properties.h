#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/fault.h"

/// The syntax of a properties file, before anything is known about which sections and keys exist:
///
///     # a comment, on a line of its own
///     [section]
///     key = value
///
/// Lines end in LF or CRLF. Blanks around names and values do not count. A UTF-8 byte order mark at the start is
/// skipped, since editors that write CRLF write one as well. Everything else must be UTF-8 without control characters.
namespace millrace::config {

inline constexpr size_t kMaxFileBytes = 1 << 20;  ///< the shipped file is 10 KB; a larger one is some other file
inline constexpr size_t kMaxLineBytes = 4096;     ///< a path and some; lists stay below it

struct Entry {
  std::string section;
  std::string key;
  std::string value;
  Origin origin;
};

/// What stands in the text. What has a fault is left out of the rest.
struct Properties {
  struct Section {
    std::string name;
    Origin origin;
  };
  std::vector<Section> sections;  ///< each header once, also those without keys
  std::vector<Entry> entries;     ///< in the order of the text, each key once
  Faults faults;
};

/// `source` names the text in faults and origins.
Properties parse_properties(std::string_view text, const std::string& source);

/// What is wrong with the text of a value whatever its type: control characters, broken UTF-8, " #" (a comment that
/// would become part of the value), too long. Empty when nothing is.
std::string fault_in_text(std::string_view text);

}  // namespace millrace::config
