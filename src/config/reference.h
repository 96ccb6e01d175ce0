#pragma once

#include <string>

namespace millrace::config {

/// The whole of etc/config-node.properties: every key, commented out, at its default.
std::string render_properties_file();

/// The tables of docs/config.md, one a section, in Markdown.
std::string render_reference();

}  // namespace millrace::config
