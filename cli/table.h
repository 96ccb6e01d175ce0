#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

/// Rows in columns as wide as their widest cell, two spaces between; the first row is the heading. Control characters
/// become '?', so that a name cannot act on the terminal.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// A JSON value as "path: value" lines, objects and arrays flattened: "http.listen.0: 127.0.0.1:8080". Numbers as
/// they came. At most 64 levels deep; what is deeper stays JSON.
std::string flattened(std::string_view json);

}  // namespace millrace::cli
