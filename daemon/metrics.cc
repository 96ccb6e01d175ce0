#include "daemon/metrics.h"

#include <fmt/format.h>

#include "base/version.h"

namespace millrace::daemon {
namespace {

/// Builds the text format (version 0.0.4), a metric at a time.
class Text {
 public:
  void counter(std::string_view name, std::string_view help, double value) { metric(name, help, "counter", value); }
  void gauge(std::string_view name, std::string_view help, double value) { metric(name, help, "gauge", value); }
  /// Nanoseconds, shown as a summary in seconds.
  void summary(std::string_view name, std::string_view help, const Histogram& histogram) {
    head(name, help, "summary");
    for (double q : {0.5, 0.99, 0.999})
      text_ += fmt::format("{}{{quantile=\"{}\"}} {}\n", name, q, static_cast<double>(histogram.quantile(q)) / 1e9);
    text_ += fmt::format("{}_sum {}\n{}_count {}\n", name, static_cast<double>(histogram.sum()) / 1e9, name,
                         histogram.count());
  }
  void head(std::string_view name, std::string_view help, std::string_view type) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void line(std::string_view name, std::string_view labels, double value) {
    text_ += fmt::format("{}{{{}}} {}\n", name, labels, value);
  }
  std::string take() { return std::move(text_); }

 private:
  void metric(std::string_view name, std::string_view help, std::string_view type, double value) {
    head(name, help, type);
    text_ += fmt::format("{} {}\n", name, value);
  }
  std::string text_;
};

template <typename Number>
double number(const std::atomic<Number>& value) {
  return static_cast<double>(value.load(std::memory_order_relaxed));
}

void bus_metrics(const bus::CommitPipeline& pipeline, Text& text) {
  const bus::CommitStats& stats = pipeline.stats();
  text.counter("millrace_commits_accepted_total", "Commits that are durable.", number(stats.accepted));
  text.counter("millrace_commits_refused_total", "Commits answered with an error.", number(stats.refused));
  text.counter("millrace_commit_groups_total", "Writes of the commit pipeline.", number(stats.groups));
  text.counter("millrace_commit_bytes_total", "Bytes written by the commit pipeline.", number(stats.bytes));
  text.counter("millrace_commit_groups_led_total", "Groups carried by a caller.", number(stats.led));
  text.gauge("millrace_commits_waiting", "Commits taken and not answered.", number(stats.waiting));
  text.gauge("millrace_commits_waiting_bytes", "Their bytes.", number(stats.waiting_bytes));
  text.summary("millrace_commit_write_seconds", "Write and sync of a group.", stats.write_ns);
  text.gauge("millrace_watches", "Partitions that long polls and streams wait for.",
             static_cast<double>(pipeline.watches()));
}

void store_metrics(const store::Store& store, Text& text) {
  store::Stats stats = store.stats();
  text.gauge("millrace_store_wal_bytes", "Write-ahead log since the last flush.", static_cast<double>(stats.wal_bytes));
  text.gauge("millrace_store_disk_bytes", "Table files.", static_cast<double>(stats.disk_bytes));
  text.gauge("millrace_store_memory_bytes", "Memory of the store.", static_cast<double>(stats.memory_bytes));
  text.gauge("millrace_store_free_bytes", "Free bytes of the disk as last looked at.",
             static_cast<double>(stats.free_bytes));
  text.gauge("millrace_store_failed", "1 after an indeterminate write.", store.failed() ? 1 : 0);
}

void http_metrics(const http::Stats& stats, Text& text) {
  text.gauge("millrace_http_connections", "Open connections.", static_cast<double>(stats.connections()));
  text.counter("millrace_http_requests_total", "Requests given to a handler.", number(stats.requests));
  text.head("millrace_http_responses_total", "Responses by class of status.", "counter");
  for (size_t i = 1; i < stats.responses.size(); ++i)
    text.line("millrace_http_responses_total", fmt::format("status=\"{}xx\"", i), number(stats.responses[i]));
  text.head("millrace_http_rejected_total", "Turned away before a handler, by reason.", "counter");
  for (size_t i = 0; i < stats.rejected.size(); ++i)
    text.line("millrace_http_rejected_total",
              fmt::format("reason=\"{}\"", http::to_string(static_cast<http::Rejected>(i))), number(stats.rejected[i]));
  text.gauge("millrace_http_in_flight", "Requests not answered yet.", number(stats.in_flight));
  text.gauge("millrace_http_streams", "Open streams.", number(stats.streams));
  text.counter("millrace_http_bytes_in_total", "Bytes received.", number(stats.bytes_in));
  text.counter("millrace_http_bytes_out_total", "Bytes sent.", number(stats.bytes_out));
}

}  // namespace

std::string metrics_text(const bus::CommitPipeline& pipeline, const store::Store& store, const http::Stats& http) {
  Text text;
  text.head("millrace_build_info", "Version and revision.", "gauge");
  text.line("millrace_build_info", fmt::format("version=\"{}\",revision=\"{}\"", version(), git_revision()), 1);
  bus_metrics(pipeline, text);
  store_metrics(store, text);
  http_metrics(http, text);
  return text.take();
}

}  // namespace millrace::daemon
