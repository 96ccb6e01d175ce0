#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace millrace::config {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };
enum class LogFormat {
  kText,  ///< one line for a person; journald adds the time itself and gets the severity
  kJson   ///< one JSON object a line
};

/// [node]: the process itself. Keys and their meaning: node_config.cc.
struct NodeConfig {
  std::string name;                      ///< never empty once loaded
  std::filesystem::path data_directory;  ///< absolute once loaded
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  std::chrono::milliseconds shutdown_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds loop_stuck_after = std::chrono::seconds(10);
};

}  // namespace millrace::config
