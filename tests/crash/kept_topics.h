#pragma once

#include <atomic>
#include <map>
#include <string>

#include "tests/crash/connection.h"
#include "tests/crash/history.h"

namespace millrace::tests {

/// Two topics that lose records as they should, written through kills of the daemon: a compacted one keeps the last
/// value of each key, one with a retention of a second keeps its newest records.
class KeptTopics {
 public:
  KeptTopics(Whereabouts& where, History& history);

  /// One writer, until `stop`. Each request is repeated under its key until it is answered.
  void write(uint64_t seed, const std::atomic<bool>& stop);
  /// After the last write: the logs against what was written.
  void check();
  std::string summary() const;

 private:
  struct Written {
    std::string key, value;
  };
  void check_compacted();
  void check_brief();

  Whereabouts& where_;
  History& history_;
  std::map<std::string, std::string> last_;  ///< of the compacted topic
  std::map<uint64_t, Written> brief_;        ///< by offset
  uint64_t written_ = 0, compacted_left_ = 0, brief_left_ = 0;
};

}  // namespace millrace::tests
