#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"

namespace millrace::api {

/// One page of metrics in Prometheus' text format, filled at the moment of the scrape. One thread at a time.
class MetricsPage {
 public:
  /// Values of one label, each with its figure: {{"2xx", 17}, {"4xx", 1}}.
  using ByLabel = std::vector<std::pair<std::string, double>>;

  MetricsPage();
  ~MetricsPage();

  void counter(std::string_view name, std::string_view help, double value);
  void counters(std::string_view name, std::string_view help, std::string_view label, const ByLabel& values);
  void gauge(std::string_view name, std::string_view help, double value);
  /// One figure for each combination of values of the labels.
  using ByLabels = std::vector<std::pair<std::vector<std::string>, double>>;
  void gauges(std::string_view name, std::string_view help, const std::vector<std::string>& labels,
              const ByLabels& values);
  /// Always 1; what matters are the labels.
  void info(std::string_view name, std::string_view help,
            const std::vector<std::pair<std::string, std::string>>& labels);
  /// A histogram of nanoseconds, as a summary in seconds.
  void summary(std::string_view name, std::string_view help, const Histogram& nanoseconds);

  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace millrace::api
