#include "config/node_config.h"

#include "config/section_builder.h"
#include "config/section_tables.h"

namespace millrace::config {

using namespace std::chrono_literals;

Section node_section() {
  using C = NodeConfig;
  SectionBuilder<C> s("node", &Config::node,
                      "The process itself: who it is, where its data lies, how it logs and stops.");
  s.text("name", &C::name, 64, "Friendly name of the node, as /v1/node shows it.").empty_stands_for("the host name");
  s.path("dataDirectory", &C::data_directory,
         "Where everything durable lies; created when missing. The option --data DIR sets it as well. One daemon a "
         "directory.")
      .empty_stands_for("$XDG_STATE_HOME/millrace, or ~/.local/state/millrace when XDG_STATE_HOME is not set");
  s.choice("logLevel", &C::log_level,
           {{"trace", LogLevel::kTrace},
            {"debug", LogLevel::kDebug},
            {"info", LogLevel::kInfo},
            {"warning", LogLevel::kWarning},
            {"error", LogLevel::kError}},
           "The least severity that is logged.")
      .applied_by_reload();
  s.choice("logFormat", &C::log_format, {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
           "How a log line looks: text for people (under journald without time, with its priority), json for machines. "
           "Always on standard error.");
  s.duration("shutdownTimeout", &C::shutdown_timeout, 100ms, 10min,
             "How long an orderly stop may take. After that the process ends at once, with exit code 70; nothing "
             "acknowledged is "
             "lost by it. The service's TimeoutStopSec must be longer.");
  s.duration("loopStuckAfter", &C::loop_stuck_after, 100ms, 10min,
             "A loop that makes no progress for this long is stuck: health fails, and the service manager's watchdog "
             "is no longer "
             "fed until the loop moves again.");
  return std::move(s).build();
}

}  // namespace millrace::config
