#pragma once

#include <string>
#include <vector>

namespace millrace::bench {

/// The middle value; the mean of the two middle ones of an even number. Not for an empty list.
double median(std::vector<double> values);

/// Runs `work` and says how long it took and how much CPU time the whole process used meanwhile.
struct Window {
  double seconds = 0;
  double cpu_seconds = 0;
};
template <typename Work>
Window measure(Work&& work);

enum class Better { kHigher, kLower };

/// One figure and what it is held against, measured or fixed, over several runs.
struct Case {
  std::string name;
  std::string unit;
  Better better = Better::kHigher;
  std::string reference_name;
  /// One value a run. A fixed reference is given once, a measured one as often as ours.
  std::vector<double> ours = {};
  std::vector<double> reference = {};
  /// CPU time of the whole process per operation, microseconds, one value a run; may be empty.
  std::vector<double> our_cpu_us = {};
  std::vector<double> reference_cpu_us = {};
  /// "sync", "async" or "none": what an acknowledgement of the measured thing promises.
  std::string durability = "none";

  /// At least 1 means at least as good as the reference, whichever way is better.
  double ratio() const;
};

/// Collects cases; prints a table for people, then one line of JSON for each case.
class Report {
 public:
  /// `conditions` goes into the heading: durability mode, machine, what was measured how.
  Report(std::string bench, std::string conditions);
  void add(Case result);
  void print() const;

 private:
  std::string bench_;
  std::string conditions_;
  std::vector<Case> cases_;
};

double process_cpu_seconds();
double steady_seconds();

template <typename Work>
Window measure(Work&& work) {
  double cpu = process_cpu_seconds(), start = steady_seconds();
  work();
  return {steady_seconds() - start, process_cpu_seconds() - cpu};
}

}  // namespace millrace::bench
