#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "tests/crash/connection.h"
#include "tests/crash/history.h"

namespace millrace::tests {

/// Members of one consumer group over HTTP, and what must hold of it across kills of the daemon: a commit that was
/// acknowledged is not taken back, and a record below one is not delivered again. Any thread.
class GroupReaders {
 public:
  GroupReaders(Whereabouts& where, History& history, std::string topic);

  /// One member, until `stop`: joins, reads and commits, sometimes leaves, sometimes is silent until it is counted out.
  void consume(uint64_t seed, const std::atomic<bool>& stop);
  /// What is committed is at least what was acknowledged until now.
  void check_committed();
  /// Until everything that is in the topic now is committed; for when nobody writes any more.
  void wait_until_all_is_read();
  std::string summary() const;

 private:
  using Offsets = std::map<uint32_t, uint64_t>;  ///< by partition
  Offsets acknowledged() const;
  void acknowledge(uint32_t partition, uint64_t offset);

  Whereabouts& where_;
  History& history_;
  const std::string topic_;
  mutable std::mutex mutex_;
  Offsets acknowledged_;
  std::map<Place, int> delivered_;
  uint64_t commits_ = 0, refused_ = 0, joins_ = 0;
};

}  // namespace millrace::tests
