#include "bench/support/report.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "base/result.h"
#include "base/version.h"

namespace millrace::bench {
namespace {

double clock_seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Three to four significant digits, with thousands apart.
std::string human(double value) {
  if (value < 10) return fmt::format("{:.3f}", value);
  if (value < 1000) return fmt::format("{:.1f}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string with_range(const std::vector<double>& values) {
  if (values.empty()) return "-";
  if (values.size() == 1) return human(values[0]);
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{} ({} .. {})", human(median(values)), human(*low), human(*high));
}

std::string cpu(const std::vector<double>& values) {
  return values.empty() ? "-" : fmt::format("{:.3f}", median(values));
}

}  // namespace

double process_cpu_seconds() {
  return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}
double steady_seconds() {
  return clock_seconds(CLOCK_MONOTONIC);
}

double median(std::vector<double> values) {
  MILLRACE_ASSERT(!values.empty(), "the median of nothing");
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double Case::ratio() const {
  double mine = median(ours), theirs = median(reference);
  return better == Better::kHigher ? mine / theirs : theirs / mine;
}

Report::Report(std::string bench, std::string conditions)
    : bench_(std::move(bench)), conditions_(std::move(conditions)) {}

void Report::add(Case result) {
  cases_.push_back(std::move(result));
}

void Report::print() const {
  fmt::print("\nbench {} ({}); millrace {} {} {}\n", bench_, conditions_, version(), git_revision(), build_type());
  fmt::print(
      "median (lowest .. highest) over the runs; ratio >= 1 is at least as good as the reference; CPU us/op of the\n"
      "whole process, ours / reference\n\n");
  size_t name_width = 4, ours_width = 4, reference_width = 9, unit_width = 4;
  for (const Case& c : cases_) {
    name_width = std::max(name_width, c.name.size());
    unit_width = std::max(unit_width, c.unit.size());
    ours_width = std::max(ours_width, with_range(c.ours).size());
    reference_width = std::max(reference_width, with_range(c.reference).size() + c.reference_name.size() + 2);
  }
  auto row = [&](std::string_view name, std::string_view unit, std::string_view ours, std::string_view reference,
                 std::string_view ratio, std::string_view runs, std::string_view cpu_us) {
    fmt::print("{:<{}}  {:<{}}  {:>{}}  {:>{}}  {:>6}  {:>4}  {}\n", name, name_width, unit, unit_width, ours,
               ours_width, reference, reference_width, ratio, runs, cpu_us);
  };
  row("case", "unit", "ours", "reference", "ratio", "runs", "CPU us/op");
  for (const Case& c : cases_)
    row(c.name, c.unit, with_range(c.ours), c.reference_name + ": " + with_range(c.reference),
        fmt::format("{:.2f}", c.ratio()), std::to_string(c.ours.size()),
        cpu(c.our_cpu_us) + " / " + cpu(c.reference_cpu_us));
  fmt::print("\n");
  for (const Case& c : cases_)
    fmt::print(
        "{{\"bench\":\"{}\",\"case\":\"{}\",\"unit\":\"{}\",\"better\":\"{}\",\"ours\":{:.6g},\"reference\":{:.6g},"
        "\"referenceName\":\"{}\",\"ratio\":{:.4g},\"runs\":{},\"durability\":\"{}\"}}\n",
        bench_, c.name, c.unit, c.better == Better::kHigher ? "higher" : "lower", median(c.ours), median(c.reference),
        c.reference_name, c.ratio(), c.ours.size(), c.durability);
  std::fflush(stdout);
}

}  // namespace millrace::bench
