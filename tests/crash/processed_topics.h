#pragma once

#include <atomic>
#include <set>
#include <string>

#include "tests/crash/connection.h"
#include "tests/crash/history.h"

namespace millrace::tests {

/// What the daemon's processors make of records, through kills of the daemon and drills of its workers: each record of
/// topic `t` is counted once, and each record sent to `delayed` comes out of `fired` once.
class ProcessedTopics {
 public:
  ProcessedTopics(Whereabouts& where, History& history);

  /// One writer of `delayed`, until `stop`, who stops a worker now and then.
  void write(uint64_t seed, const std::atomic<bool>& stop);
  /// Until the processors have caught up and no timer is left, for when nobody writes any more; then compares.
  void check(size_t records_of_t);
  std::string summary() const;

 private:
  void stop_a_worker(Connection& connection, uint64_t which);
  void wait_until_caught_up(Connection& connection);

  Whereabouts& where_;
  History& history_;
  std::multiset<std::string> sent_;
  uint64_t stopped_ = 0;
  uint64_t counted_ = 0, fired_ = 0;
};

}  // namespace millrace::tests
