#include "config/load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/result.h"
#include "config/check.h"
#include "config/key.h"
#include "config/properties.h"
#include "config/value.h"

namespace millrace::config {
namespace {

/// The file's text, or what is wrong with the file. Reads one byte more than allowed, so that the parser sees "too
/// large".
Parsed<std::string> read_file(const std::filesystem::path& path) {
  auto refused = [] { return Wrong(fmt::format("cannot be read: {}", std::strerror(errno))); };
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused();
  std::string text;
  std::array<char, 65536> buffer;
  ssize_t got = 0;
  while (text.size() <= kMaxFileBytes && (got = ::read(fd, buffer.data(), buffer.size())) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  if (got < 0) {
    auto error = refused();
    ::close(fd);
    return error;
  }
  ::close(fd);
  return text;
}

std::vector<std::string_view> names_of_sections() {
  std::vector<std::string_view> names;
  for (const Section& section : sections()) names.push_back(section.name);
  return names;
}

std::vector<std::string_view> names_of_keys(const Section& section) {
  std::vector<std::string_view> names;
  for (const Key& key : section.keys) names.push_back(key.name);
  return names;
}

std::string hint(std::string_view near) {
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

std::string unknown_section(std::string_view name) {
  std::string_view near = nearest(name, names_of_sections());
  if (!near.empty()) return "unknown section" + hint(near);
  std::string known;
  for (std::string_view section : names_of_sections())
    known += fmt::format("{}[{}]", known.empty() ? "" : ", ", section);
  return "unknown section; known are " + known;
}

std::string unknown_key(const Section& section, std::string_view name) {
  for (const Section& other : sections())
    if (other.find(name)) return fmt::format("unknown key; it belongs to [{}]", other.name);
  return "unknown key" + hint(nearest(name, names_of_keys(section)));
}

class Loader {
 public:
  explicit Loader(const Environment& environment) : environment_(environment) {}

  void read_text(std::string_view text, const std::string& source) {
    Properties properties = parse_properties(text, source);
    faults_ = std::move(properties.faults);
    // A key whose line is broken has a fault already; rules that involve it would only confuse.
    for (const Fault& fault : faults_)
      if (!fault.key.empty()) faulty_.insert(fault.section + "." + fault.key);
    for (const auto& section : properties.sections)
      if (!find_section(section.name)) fault(section.origin, section.name, {}, unknown_section(section.name));
    for (const Entry& entry : properties.entries)
      if (const Section* section = find_section(entry.section)) set(*section, entry.key, entry.value, entry.origin);
    in_file_order();
  }

  void override_with(const Override& override) {
    Origin origin{override.option, 0};
    size_t equals = override.assignment.find('=');
    std::string_view path = trim(std::string_view(override.assignment).substr(0, equals));
    size_t dot = path.find('.');
    if (equals == std::string::npos || dot == std::string_view::npos)
      return fault(origin, {}, {}, fmt::format("{} is not of the form section.key=value", show(override.assignment)));
    std::string section_name(path.substr(0, dot)), key(path.substr(dot + 1));
    std::string_view value = trim(std::string_view(override.assignment).substr(equals + 1));
    if (!fault_in_text(path).empty()) return fault(origin, {}, {}, fmt::format("{} is no key", show(path)));
    const Section* section = find_section(section_name);
    if (!section) return fault(origin, section_name, {}, unknown_section(section_name));
    std::string text_fault = fault_in_text(value);
    if (!text_fault.empty()) return fault(origin, section_name, key, text_fault);
    if (auto [first, fresh] = overridden_.emplace(std::string(path), override.option); !fresh)
      return fault(origin, section_name, key, fmt::format("the key is set twice; {} set it already", first->second));
    set(*section, key, value, origin);
  }

  tl::expected<Loaded, Faults> finish() {
    resolve();
    for (Conflict& conflict : check(loaded_.config)) {
      if (faulty_.contains(conflict.key) || faulty_.contains(conflict.other)) continue;
      const Key& key = key_at(conflict.key);
      Origin origin = loaded_.origin_of(conflict.key);
      if (origin.is_default() && !conflict.other.empty()) origin = loaded_.origin_of(conflict.other);
      fault(origin, key.section, key.name, std::move(conflict.message));
    }
    if (!faults_.empty()) return tl::unexpected<Faults>(std::move(faults_));
    return std::move(loaded_);
  }

 private:
  void set(const Section& section, std::string_view name, std::string_view value, const Origin& origin) {
    const Key* key = section.find(name);
    if (!key) return fault(origin, section.name, std::string(name), unknown_key(section, name));
    std::string wrong;
    if (value.empty() && key->empty_means.empty())
      wrong = fmt::format("the value is empty; leave the key out for the default, {}", key->write(Config{}));
    else
      wrong = key->read(loaded_.config, value);
    if (!wrong.empty()) return fault(origin, section.name, key->name, std::move(wrong));
    loaded_.origins[key->path()] = origin;
  }

  /// Fills what is empty from the environment and makes paths absolute.
  void resolve() {
    Config& config = loaded_.config;
    if (config.node.name.empty()) config.node.name = environment_.host_name;
    auto& data = config.node.data_directory;
    if (data.empty()) data = default_data_directory();
    if (data.empty() && !faulty_.contains("node.dataDirectory"))
      fault({"environment", 0}, "node", "dataDirectory",
            "neither XDG_STATE_HOME nor HOME is set, so there is no default; set it, or give --data DIR");
    data = absolute(data);
    auto& backups = config.storage.backup_directory;
    backups = backups.empty() ? data / "backups" : absolute(backups);
    auto& socket = config.http.unix_socket;
    if (socket.empty()) socket = data / "millrace.sock";
    if (socket != "none") socket = absolute(socket);
  }

  std::filesystem::path default_data_directory() const {
    // The XDG base directory specification has relative values ignored.
    if (environment_.xdg_state_home && environment_.xdg_state_home->starts_with('/'))
      return std::filesystem::path(*environment_.xdg_state_home) / "millrace";
    if (environment_.home && environment_.home->starts_with('/'))
      return std::filesystem::path(*environment_.home) / ".local/state/millrace";
    return {};
  }

  std::filesystem::path absolute(const std::filesystem::path& path) const {
    std::filesystem::path normal = (environment_.working_directory / path).lexically_normal();
    return normal.has_filename() || normal == normal.root_path() ? normal : normal.parent_path();
  }

  void fault(Origin origin, std::string section, std::string key, std::string message) {
    if (!key.empty()) faulty_.insert(section + "." + key);
    if (faults_.size() < kMaxFaults)
      faults_.push_back({std::move(origin), std::move(section), std::move(key), std::move(message)});
  }

  /// Syntax is checked before meaning; the reader goes through the file once.
  void in_file_order() {
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](const Fault& a, const Fault& b) { return a.origin.line < b.origin.line; });
  }

  const Environment& environment_;
  Loaded loaded_;
  Faults faults_;
  std::set<std::string> faulty_;                   ///< section.key of every key with a fault
  std::map<std::string, std::string> overridden_;  ///< section.key -> option
};

}  // namespace

Environment Environment::of_this_process() {
  Environment environment;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0 && host[0] != '\0') environment.host_name = host.data();
  std::error_code error;
  std::filesystem::path here = std::filesystem::current_path(error);
  if (!error) environment.working_directory = here;
  auto variable = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value && *value ? std::optional<std::string>(value) : std::nullopt;
  };
  environment.home = variable("HOME");
  environment.xdg_state_home = variable("XDG_STATE_HOME");
  return environment;
}

Origin Loaded::origin_of(const std::string& key_path) const {
  auto found = origins.find(key_path);
  return found == origins.end() ? Origin{} : found->second;
}

tl::expected<Loaded, Faults> load(const Sources& sources) {
  if (!sources.file) return load_text(std::nullopt, {}, sources.overrides, sources.environment);
  auto text = read_file(*sources.file);
  if (!text) return tl::unexpected<Faults>({{Origin{sources.file->string(), 0}, {}, {}, text.error()}});
  return load_text(*text, sources.file->string(), sources.overrides, sources.environment);
}

tl::expected<Loaded, Faults> load_text(std::optional<std::string_view> text, const std::string& source,
                                       const std::vector<Override>& overrides, const Environment& environment) {
  Loader loader(environment);
  if (text) loader.read_text(*text, source);
  for (const Override& override : overrides) loader.override_with(override);
  return loader.finish();
}

std::string print(const Loaded& loaded) {
  std::string out = "# Effective configuration. Above each value stands where it comes from.\n";
  for (const Section& section : sections()) {
    out += fmt::format("\n[{}]\n", section.name);
    for (const Key& key : section.keys) {
      std::string value = key.write(loaded.config);
      out += fmt::format("# {}\n{} ={}{}\n", to_string(loaded.origin_of(key.path())), key.name,
                         value.empty() ? "" : " ", value);
    }
  }
  return out;
}

ReloadPlan plan_reload(const Loaded& running, const Loaded& fresh) {
  ReloadPlan plan{running, {}, {}};
  for (const Section& section : sections()) {
    for (const Key& key : section.keys) {
      std::string from = key.write(running.config), to = key.write(fresh.config);
      if (key.reloadable) {
        MILLRACE_ASSERT(key.read(plan.result.config, to).empty(),
                        "a key does not read back what it wrote: " + key.path());
        if (fresh.origins.contains(key.path()))
          plan.result.origins[key.path()] = fresh.origins.at(key.path());
        else
          plan.result.origins.erase(key.path());
      }
      if (from != to) (key.reloadable ? plan.applied : plan.needs_restart).push_back({key.path(), from, to});
    }
  }
  return plan;
}

}  // namespace millrace::config
