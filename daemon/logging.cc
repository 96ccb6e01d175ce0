#include "daemon/logging.h"

#include <fmt/format.h>
#include <pthread.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <iterator>

#include "base/utf8.h"

namespace millrace::daemon {
namespace {

using Out = spdlog::memory_buf_t;

std::string_view name_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
      return "trace";
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::info:
      return "info";
    case spdlog::level::warn:
      return "warning";
    case spdlog::level::err:
      return "error";
    default:
      return "fatal";
  }
}

/// The syslog priority, for journald.
int priority_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return 7;
    case spdlog::level::info:
      return 6;
    case spdlog::level::warn:
      return 4;
    case spdlog::level::err:
      return 3;
    default:
      return 2;
  }
}

spdlog::level::level_enum to_spdlog(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::kTrace:
      return spdlog::level::trace;
    case config::LogLevel::kDebug:
      return spdlog::level::debug;
    case config::LogLevel::kInfo:
      return spdlog::level::info;
    case config::LogLevel::kWarning:
      return spdlog::level::warn;
    case config::LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void append(Out& out, std::string_view text) {
  out.append(text.data(), text.data() + text.size());
}

/// Text that stays on its line and, with `json`, inside its quotes.
void append_escaped(Out& out, std::string_view text, bool json) {
  while (!text.empty()) {
    char c = text.front();
    size_t length = utf8_sequence(text);
    if (length == 0) {
      length = 1;
      append(out, "\xef\xbf\xbd");  // U+FFFD
    } else if (c == '\n' || c == '\r' || c == '\t') {
      append(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
    } else if (json && (c == '"' || c == '\\')) {
      out.push_back('\\');
      out.push_back(c);
    } else {
      append(out, text.substr(0, length));
    }
    text.remove_prefix(length);
  }
}

void append_time(Out& out, spdlog::log_clock::time_point time) {
  auto since = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  std::time_t seconds = since / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                 utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, since % 1000);
}

/// Lines are formatted by the thread that logs, so this is the thread the line is about.
std::string this_thread_name() {
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  return name.data();
}

class Formatter final : public spdlog::formatter {
 public:
  explicit Formatter(LogStyle style) : style_(style) {}

  void format(const spdlog::details::log_msg& message, Out& out) override {
    std::string_view text(message.payload.data(), message.payload.size());
    switch (style_) {
      case LogStyle::kText:
        append_time(out, message.time);
        fmt::format_to(std::back_inserter(out), " {:<7} [", name_of(message.level));
        append_escaped(out, this_thread_name(), false);
        append(out, "] ");
        append_escaped(out, text, false);
        break;
      case LogStyle::kJournal:
        fmt::format_to(std::back_inserter(out), "<{}>[", priority_of(message.level));
        append_escaped(out, this_thread_name(), false);
        append(out, "] ");
        append_escaped(out, text, false);
        break;
      case LogStyle::kJson:
        append(out, R"({"time":")");
        append_time(out, message.time);
        fmt::format_to(std::back_inserter(out), R"(","level":"{}","thread":")", name_of(message.level));
        append_escaped(out, this_thread_name(), true);
        append(out, R"(","message":")");
        append_escaped(out, text, true);
        append(out, "\"}");
        break;
    }
    out.push_back('\n');
  }

  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<Formatter>(style_); }

 private:
  LogStyle style_;
};

/// systemd names the stream it connected as "device:inode" (systemd.exec(5)); a redirection in between makes them
/// differ.
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

}  // namespace

std::unique_ptr<spdlog::formatter> make_formatter(LogStyle style) {
  return std::make_unique<Formatter>(style);
}

LogStyle style_for(config::LogFormat format) {
  if (format == config::LogFormat::kJson) return LogStyle::kJson;
  return stderr_is_journal() ? LogStyle::kJournal : LogStyle::kText;
}

void set_up_logging(config::LogFormat format, config::LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("millraced", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(make_formatter(style_for(format)));
  spdlog::set_default_logger(std::move(logger));
  set_log_level(level);
}

void set_log_level(config::LogLevel level) {
  spdlog::set_level(to_spdlog(level));
}

}  // namespace millrace::daemon
