#pragma once

#include <spdlog/formatter.h>

#include <memory>

#include "config/node_config.h"

/// Where log lines go and how they look. Every module logs with spdlog's own functions (spdlog::info(...)); a line is
/// written to standard error, whole, by the thread that logs it. Nothing is buffered, so nothing is lost in a crash.
namespace millrace::daemon {

enum class LogStyle {
  kText,     ///< "2026-12-01T09:00:00.123Z info  [io-0] listening on 127.0.0.1:8080"
  kJournal,  ///< "<6>[io-0] listening on 127.0.0.1:8080": journald keeps the time and reads the priority (sd-daemon(3))
  kJson      ///< {"time":"...","level":"info","thread":"io-0","message":"..."}
};

/// Line breaks, control characters and broken UTF-8 in a message are escaped: what a client sends cannot forge a line.
std::unique_ptr<spdlog::formatter> make_formatter(LogStyle style);

/// The style for a format: text becomes kJournal when standard error is connected to journald.
LogStyle style_for(config::LogFormat format);

/// Replaces spdlog's default logger. Once, before any thread starts.
void set_up_logging(config::LogFormat format, config::LogLevel level);

/// At any time, by any thread.
void set_log_level(config::LogLevel level);

}  // namespace millrace::daemon
