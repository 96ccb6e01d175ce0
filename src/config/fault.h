#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::config {

/// Where a value comes from, and so where a fault is to be mended.
struct Origin {
  std::string source;  ///< a file name, or the option ("--set", "--data"); empty for a default
  int line = 0;        ///< 1-based; 0 when the source has no lines

  bool is_default() const { return source.empty(); }
};

/// "default", "--set" or "config-node.properties:12".
std::string to_string(const Origin& origin);

/// One thing wrong with the configuration.
struct Fault {
  Origin origin;
  std::string section;  ///< empty when the fault lies outside any
  std::string key;      ///< empty when the fault is no key's
  std::string message;
};

/// "config-node.properties:12: [node] logLevl: unknown key; did you mean 'logLevel'?"
std::string to_string(const Fault& fault);

/// All that is wrong, in the order of the file, then of the command line. At most kMaxFaults are kept.
using Faults = std::vector<Fault>;
inline constexpr size_t kMaxFaults = 100;  ///< a person mends them from the top; more only scroll

/// One fault a line.
std::string to_string(const Faults& faults);

/// The candidate that `name` is most likely a misspelling of; empty when none is near. Upper and lower case are the
/// same here.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace millrace::config
