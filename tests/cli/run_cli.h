#pragma once

#include <string>
#include <vector>

namespace millrace::cli::tests {

struct Ran {
  int exit = -1;
  std::string out, err;
};

/// The whole client in this process, as `millrace ARGUMENTS < INPUT`, with short pauses between repetitions.
Ran run_cli(const std::string& server, std::vector<std::string> arguments, const std::string& input = "");

}  // namespace millrace::cli::tests
