#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "bus/commit_log.h"
#include "worker/input.h"

namespace millrace::proto {
class ParkedRow;
}

namespace millrace::worker {

/// What is known of a parked record or timer without reading its row.
struct Parked {
  uint64_t number = 0;       ///< in the order in which they were parked
  std::optional<Bytes> key;  ///< absent: waits for nobody, and nobody for it
  uint32_t attempts = 0;     ///< that failed; 0: it waits behind another one of its key
  int64_t due_ms = 0;
  size_t bytes = 0;
  std::optional<std::pair<int64_t, Bytes>> timer;  ///< due and id, of a timer
};

/// The records of one home that failed and are to be tried again, and those that wait behind them: of a key only the
/// first is tried, when it is due; the others follow in order. Index over the rows `parked/..`, which are the truth and
/// hold the due times; it changes after the commit. Bounded by its owner. By its worker's thread.
class Parking {
 public:
  explicit Parking(bus::Home home) : home_(std::move(home)) {}

  /// Errors: those of View::list, kCorruption INVALID_PARKED_ROW.
  Status load(const bus::View& view);

  bool holds(const Bytes& key) const { return queues_.contains(queue_of(key)); }
  size_t count() const { return entries_.size(); }
  size_t bytes() const { return bytes_; }
  uint64_t next_number() const { return next_number_; }
  /// Of the earliest attempt; 0: at once. nullopt: nothing is parked.
  std::optional<int64_t> next_due() const;
  /// The first that is due.
  const Parked* due(int64_t now_ms) const;
  std::optional<uint64_t> find_timer(int64_t due_ms, const Bytes& id) const;

  Bytes key_of(uint64_t number) const;
  /// Errors: those of View::get, kCorruption INVALID_PARKED_ROW.
  Result<proto::ParkedRow> read(const bus::View& view, uint64_t number) const;

  /// A row was written, first or again.
  void put(Parked parked);
  void erase(uint64_t number);

  /// What a row says, for put().
  static Result<Parked> parse(uint64_t number, const proto::ParkedRow& row);

 private:
  static std::string queue_of(const Bytes& key) { return "k" + key; }
  static std::string queue_of(const Parked& parked);

  bus::Home home_;
  std::map<uint64_t, Parked> entries_;
  std::unordered_map<std::string, std::set<uint64_t>> queues_;
  std::set<std::pair<int64_t, uint64_t>> due_;  ///< the first of each queue, by due time
  size_t bytes_ = 0;
  uint64_t next_number_ = 1;
};

/// The batch for the dead-letter topic: the record as it was, and headers that say why and whence it is there. Headers:
/// docs/workers.md.
Bytes dead_letter(const proto::ParkedRow& row, const bus::RecordView& record, bool with_value);

}  // namespace millrace::worker
