#include "config/key.h"

#include "base/result.h"
#include "config/section_tables.h"

namespace millrace::config {

const Key* Section::find(std::string_view key) const {
  for (const Key& candidate : keys)
    if (candidate.name == key) return &candidate;
  return nullptr;
}

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {node_section(), storage_section(), bus_section(), worker_section(),
                                           http_section()};
  return all;
}

const Section* find_section(std::string_view name) {
  for (const Section& section : sections())
    if (section.name == name) return &section;
  return nullptr;
}

const Key& key_at(std::string_view path) {
  size_t dot = path.find('.');
  const Section* section = find_section(path.substr(0, dot));
  const Key* key = section && dot != std::string_view::npos ? section->find(path.substr(dot + 1)) : nullptr;
  MILLRACE_ASSERT(key != nullptr, std::string("there is no configuration key ") + std::string(path));
  return *key;
}

}  // namespace millrace::config
