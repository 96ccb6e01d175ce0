#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace millrace::config {

/// Two values that are fine each for itself but not together, or one that depends on what it was resolved to.
struct Conflict {
  std::string key;    ///< "section.key" to mend
  std::string other;  ///< the key it clashes with; empty when it is alone
  std::string message;
};

/// The rules between keys. `config` is resolved: names and paths are filled in.
std::vector<Conflict> check(const Config& config);

}  // namespace millrace::config
