#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace millrace::tests {

/// The daemon that this build made.
inline const std::filesystem::path kMillraced = MILLRACED_PATH;

/// A daemon on `data`, listening on a port that the system chooses; `more` are further arguments. It is starting when
/// this returns: wait_for_err("ready") or wait_for_port() before talking to it.
inline Process::Options daemon_on(const std::filesystem::path& data, std::vector<std::string> more = {}) {
  Process::Options options;
  options.arguments = {"--data", data.string(), "--set", "http.listen=127.0.0.1:0"};
  options.arguments.insert(options.arguments.end(), more.begin(), more.end());
  // The test's own service manager must not hear of it, nor the journal's format be assumed.
  options.environment = {
      {"NOTIFY_SOCKET", std::nullopt}, {"WATCHDOG_USEC", std::nullopt}, {"JOURNAL_STREAM", std::nullopt}};
  return options;
}

}  // namespace millrace::tests
