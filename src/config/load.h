#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "config/config.h"
#include "config/fault.h"

/// From a file, the command line and the environment to a Config, or to everything that is wrong. Also the other way:
/// a Config as text, and what a reload changes. By the main thread; nothing here is shared.
namespace millrace::config {

/// One "section.key=value" of the command line.
struct Override {
  std::string option;  ///< names the source: "--set", "--data"
  std::string assignment;
};

/// What the defaults of some keys depend on.
struct Environment {
  std::string host_name = "localhost";
  std::filesystem::path working_directory = "/";
  std::optional<std::string> home;
  std::optional<std::string> xdg_state_home;

  static Environment of_this_process();
};

struct Sources {
  std::optional<std::filesystem::path>
      file;  ///< without one, everything is at its default; no other place is looked at
  std::vector<Override> overrides;
  Environment environment;
};

struct Loaded {
  Config config;
  /// "section.key" -> where its value comes from; keys at their default are not in it.
  std::map<std::string, Origin> origins;

  Origin origin_of(const std::string& key_path) const;
};

/// Reads, checks and resolves. All faults are found in one go, at most kMaxFaults of them.
tl::expected<Loaded, Faults> load(const Sources& sources);

/// The same with the file's text at hand; `source` names it in faults. An absent text is no file.
tl::expected<Loaded, Faults> load_text(std::optional<std::string_view> text, const std::string& source,
                                       const std::vector<Override>& overrides, const Environment& environment);

/// Every key with its value and, in a comment above it, the value's origin. load_text() reads it back to the same
/// Config.
std::string print(const Loaded& loaded);

/// What a reload would do: `running` is what the daemon runs with, `fresh` what the sources say now.
struct ReloadPlan {
  struct Change {
    std::string key;  ///< "section.key"
    std::string from;
    std::string to;
  };
  Loaded result;                      ///< `running` with the reloadable keys of `fresh`
  std::vector<Change> applied;        ///< reloadable keys that differ
  std::vector<Change> needs_restart;  ///< the other keys that differ; `result` keeps their old values
};
ReloadPlan plan_reload(const Loaded& running, const Loaded& fresh);

}  // namespace millrace::config
