#include "daemon/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/version.h"
#include "daemon/exit_code.h"
#include "store/store.h"

namespace millrace::daemon {
namespace {

constexpr const char* kFooter =
    "\nWithout --config everything is at its default; no other place is searched for a file.\n"
    "SIGTERM and SIGINT stop in order, a second one at once; SIGHUP reloads the configuration.\n"
    "Exit codes: 0 stopped in order; 64 command line; 70 internal error, or the stop took too long;\n"
    "74 disk error or damaged data; 75 in use or disk nearly full, try later; 78 configuration, or newer data.";

/// A shell variable that is unexpectedly empty must not quietly mean the default.
std::string not_empty(const std::string& value) {
  return value.empty() ? "the value is empty" : "";
}

}  // namespace

tl::expected<CommandLine, int> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{"The Millrace node: a durable partitioned event log behind an HTTP API.", "millraced"};
  std::string file, data;
  std::vector<std::string> assignments;
  bool check = false, print = false, accept_loss = false;
  auto* config_option =
      app.add_option("--config", file, "Read this properties file")->type_name("FILE")->check(not_empty, "");
  auto* data_option =
      app.add_option("--data", data, "Keep everything durable here (the same as --set node.dataDirectory=DIR)")
          ->type_name("DIR")
          ->check(not_empty, "");
  app.add_option("--set", assignments, "Set one key over the file; may be repeated")
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false);
  auto* check_flag = app.add_flag("--check-config", check, "Check file and options, report every fault, and end");
  app.add_flag("--print-config", print, "Print every key with its value and the value's origin, and end")
      ->excludes(check_flag);
  app.add_flag("--accept-loss", accept_loss,
               "Start once with a damaged store although acknowledged data is missing from it; what is left is kept");
  app.set_version_flag("--version", version_text, "Print version, revision, build type and RocksDB's version, and end");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tl::unexpected<int>(app.exit(error) == 0 ? kExitOk : kExitUsage);
  }

  CommandLine command;
  if (check) command.task = CommandLine::Task::kCheckConfig;
  if (print) command.task = CommandLine::Task::kPrintConfig;
  command.accept_loss = accept_loss;
  if (*config_option) command.sources.file = file;
  for (std::string& assignment : assignments) command.sources.overrides.push_back({"--set", std::move(assignment)});
  if (*data_option) command.sources.overrides.push_back({"--data", "node.dataDirectory=" + data});
  command.sources.environment = config::Environment::of_this_process();
  return command;
}

std::string version_text() {
  return fmt::format("millraced {} (revision {}, {}), RocksDB {}", version(), git_revision(), build_type(),
                     store::Store::rocksdb_version());
}

}  // namespace millrace::daemon
