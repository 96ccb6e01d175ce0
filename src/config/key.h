#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace millrace::config {

/// One key of one section: everything that reading, checking, printing and documenting it needs. The tables of keys are
/// the <section>_config.cc files; etc/config-node.properties and docs/config.md are rendered from them and held to them
/// by a test.
struct Key {
  std::string section;
  std::string name;
  std::string type;         ///< "duration", "one of sync, async", ...
  std::string range;        ///< "1s to 10m"; empty when the type says it all
  std::string description;  ///< sentences; the first one stands alone
  std::string empty_means;  ///< what an empty value stands for; empty when an empty value is no value
  bool reloadable = false;  ///< applied by a reload; the others need a restart

  /// Puts the text's value into the struct. Answers what is wrong with the text; empty when it was taken.
  std::function<std::string(Config&, std::string_view text)> read;
  /// The value as text that read() takes back.
  std::function<std::string(const Config&)> write;

  std::string path() const { return section + "." + name; }
  Key& applied_by_reload() {
    reloadable = true;
    return *this;
  }
  Key& empty_stands_for(std::string meaning) {
    empty_means = std::move(meaning);
    return *this;
  }
};

struct Section {
  std::string name;
  std::string description;
  std::vector<Key> keys;

  const Key* find(std::string_view key) const;
};

/// Every section, in the order of the file. Built once; thread-safe afterwards.
const std::vector<Section>& sections();
const Section* find_section(std::string_view name);
/// The key must exist.
const Key& key_at(std::string_view path);

}  // namespace millrace::config
