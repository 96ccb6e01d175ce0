#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "group/coordinator.h"

/// The inside of the Coordinator, shared by its sources; nobody else includes it.
namespace millrace::group {

/// A row that was refused (queue full, disk nearly full) is written again after this time.
inline constexpr int64_t kRetryMs = 1'000;
/// And each time later, up to so many times that.
inline constexpr int64_t kMaxRetryFactor = 30;

/// One group and what is under way for it. Under the Coordinator's lock.
struct Coordinator::Entry {
  struct Held {
    std::string member;
    int32_t generation = 0;
    std::function<void()> wake;
  };

  Entry(std::string n, ClassicGroup g) : name(std::move(n)), home(home_of(name)), group(std::move(g)) {}
  static bus::Home home_of(const std::string& name) { return *bus::Home::make(bus::HomeKind::kGroup, name); }

  /// The row of table meta that fences commits of older generations.
  Bytes lease() const { return home.key("generation"); }
  /// Nothing is under way that will come back to this entry.
  bool idle() const { return !persisting && commits_in_flight == 0 && !deletion && holds.empty(); }

  const std::string name;
  const bus::Home home;
  ClassicGroup group;
  bool exists = false;             ///< its row is there
  int32_t durable_generation = 0;  ///< of its row
  bool persisting = false;         ///< its row is under way
  bool persist_wanted = false;     ///< and already out of date
  std::optional<int64_t> retry_ms;
  int64_t failures = 0;  ///< in a row, to write its row
  /// What was to be tried again when a deletion began; it is, if the deletion fails.
  bool retry_owed = false;
  uint32_t commits_in_flight = 0;
  bool deleting_rows = false;
  std::optional<std::function<void(Status)>> deletion;
  /// Of a deletion: only if no offset has been committed since.
  std::optional<int64_t> deletion_before_ms;
  std::map<uint64_t, Held> holds;
  std::optional<int64_t> deadline;
  uint64_t rebalances = 0;
  int64_t empty_since_ms = 0;
};

/// What is to be done after the lock, in order.
class Coordinator::Outbox {
 public:
  explicit Outbox(Coordinator& coordinator) : coordinator_(coordinator) {}
  void add(std::function<void()> fn) { all_.push_back(std::move(fn)); }
  void submit(bus::Commit commit) {
    auto kept = std::make_shared<bus::Commit>(std::move(commit));
    add([this, kept] { coordinator_.log_.submit(std::move(*kept)); });
  }
  void deliver() {
    for (auto& fn : all_) fn();
  }

 private:
  Coordinator& coordinator_;
  std::vector<std::function<void()>> all_;
};

/// Commits of offsets, from the check to the answer.
struct Coordinator::OffsetCommit {
  std::string group;
  MemberIdentity who;
  std::vector<bus::ConsumedOffset> offsets;
  std::vector<bus::TopicPartition> removals;
  /// `removals` are of topics that are gone: nobody's, whatever the group's state.
  bool orphans = false;
  std::function<void(Status)> reply;
  int attempts = 0;
};

Error unknown_group(const std::string& group);
Error unknown_member(const std::string& group, const std::string& member);

}  // namespace millrace::group
