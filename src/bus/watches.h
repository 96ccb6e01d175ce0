#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "bus/commit_log.h"

namespace millrace::bus {

/// Who waits for which partition. Shared by the two carriers: they add() what watch() is asked for, and tell of every
/// partition that moved or went, after their view shows it. Any thread.
class Watches {
 public:
  explicit Watches(size_t max_watches);

  /// Registers. The caller looks at its view afterwards, and calls wake_now() when there is nothing to wait for.
  /// Errors: kExhausted TOO_MANY_WATCHES.
  Result<std::unique_ptr<Watch>> add(std::vector<WatchedOffset> offsets, std::function<void()> wake);
  /// Wakes a watch that add() returned, unless something else has.
  static void wake_now(Watch& watch);

  /// `partition` has the high watermark, or (nullopt) is gone.
  struct Moved {
    TopicPartition partition;
    std::optional<uint64_t> high_watermark;
  };
  void moved(const std::vector<Moved>& partitions);

  size_t count() const;

 private:
  struct Entry;
  struct Registry;
  class Handle;
  std::shared_ptr<Registry> registry_;
};

/// Whether `view` shows that one of the positions is passed, or its partition not there.
bool any_passed(const View& view, const std::vector<WatchedOffset>& offsets);

}  // namespace millrace::bus

template <>
struct std::hash<millrace::bus::TopicPartition> {
  size_t operator()(const millrace::bus::TopicPartition& partition) const noexcept;
};
