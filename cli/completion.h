#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace millrace::cli {

/// The completion script of "bash", "zsh" or "fish", written from the command line's own description, so that it
/// cannot fall behind. Topic names are asked of the server, within a second.
std::string completion_script(const CLI::App& app, std::string_view shell);

}  // namespace millrace::cli
