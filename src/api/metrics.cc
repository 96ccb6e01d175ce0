#include "api/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace millrace::api {

struct MetricsPage::Families {
  std::vector<prometheus::MetricFamily> all;

  prometheus::MetricFamily& add(std::string_view name, std::string_view help, prometheus::MetricType type) {
    auto& family = all.emplace_back();
    family.name = name;
    family.help = help;
    family.type = type;
    return family;
  }
};

MetricsPage::MetricsPage() : families_(std::make_unique<Families>()) {}
MetricsPage::~MetricsPage() = default;

void MetricsPage::counter(std::string_view name, std::string_view help, double value) {
  families_->add(name, help, prometheus::MetricType::Counter).metric.emplace_back().counter.value = value;
}

void MetricsPage::counters(std::string_view name, std::string_view help, std::string_view label,
                           const ByLabel& values) {
  auto& family = families_->add(name, help, prometheus::MetricType::Counter);
  for (const auto& [text, value] : values) {
    auto& metric = family.metric.emplace_back();
    metric.label.push_back({std::string(label), text});
    metric.counter.value = value;
  }
}

void MetricsPage::gauge(std::string_view name, std::string_view help, double value) {
  families_->add(name, help, prometheus::MetricType::Gauge).metric.emplace_back().gauge.value = value;
}

void MetricsPage::gauges(std::string_view name, std::string_view help, const std::vector<std::string>& labels,
                         const ByLabels& values) {
  auto& family = families_->add(name, help, prometheus::MetricType::Gauge);
  for (const auto& [texts, value] : values) {
    auto& metric = family.metric.emplace_back();
    for (size_t i = 0; i < labels.size(); ++i) metric.label.push_back({labels[i], texts[i]});
    metric.gauge.value = value;
  }
}

void MetricsPage::info(std::string_view name, std::string_view help,
                       const std::vector<std::pair<std::string, std::string>>& labels) {
  auto& metric = families_->add(name, help, prometheus::MetricType::Gauge).metric.emplace_back();
  for (const auto& [label, text] : labels) metric.label.push_back({label, text});
  metric.gauge.value = 1;
}

void MetricsPage::summary(std::string_view name, std::string_view help, const Histogram& nanoseconds) {
  auto& summary = families_->add(name, help, prometheus::MetricType::Summary).metric.emplace_back().summary;
  summary.sample_count = nanoseconds.count();
  summary.sample_sum = static_cast<double>(nanoseconds.sum()) / 1e9;
  for (double quantile : {0.5, 0.99, 0.999})
    summary.quantile.push_back({quantile, static_cast<double>(nanoseconds.quantile(quantile)) / 1e9});
}

std::string MetricsPage::text() const {
  return prometheus::TextSerializer().Serialize(families_->all);
}

}  // namespace millrace::api
