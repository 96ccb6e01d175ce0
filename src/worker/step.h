#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "worker/context.h"
#include "worker/input.h"
#include "worker/parking.h"

namespace millrace::worker {

/// Everything that one Commit is to do: what goes to the domain's step, and what the worker adds. Either a parked
/// record's next attempt, or due timers, or records.
struct Plan {
  enum class Kind { kRetry, kTimers, kRecords };
  struct Row {
    Parked parked;
    Bytes value;
  };

  Kind kind = Kind::kRecords;
  std::vector<Fetched> fetched;  ///< keeps the bytes that `records` point into
  std::vector<Record> records;
  std::vector<DueTimer> timers;

  std::vector<bus::Condition> fired;  ///< rows of timers, to be deleted
  std::vector<std::pair<size_t, uint64_t>> positions;
  std::vector<Row> parked;  ///< to be written, new or anew
  std::vector<uint64_t> unparked;
  std::vector<bus::Append> dead_letters;
  uint64_t next_number = 0;
  bool waits_for_room = false;  ///< it ends before a record for which there is no room among the parked ones

  std::vector<bus::TimerChange> timer_changes;  ///< of the draft, once it is built
  bool has_stepped = false;                     ///< the domain waits to hear what became of its draft

  bool for_domain() const { return !records.empty() || !timers.empty(); }
  bool is_empty() const { return !for_domain() && positions.empty() && parked.empty() && unparked.empty(); }
  bool parks(const Bytes& key) const;
  size_t parked_bytes() const;
};

/// Puts plans and drafts together to Commits, and says what becomes of something that failed. By its worker's thread.
class StepBuilder {
 public:
  StepBuilder(const Context& context, const Task& task, bus::Home home);

  /// A record failed for the first time, or waits behind one that did (`failure` null).
  void park(const InputPartition& input, const bus::RecordView& record, const StepFailure* failure, Plan& plan,
            bool with_value) const;
  void park_timer(const DueTimer& timer, const StepFailure& failure, Plan& plan, bool with_value) const;
  /// The next attempt of what is parked under `parked` failed, too.
  void failed_again(const Parked& parked, proto::ParkedRow row, const StepFailure& failure, Plan& plan,
                    bool with_value) const;

  /// Whether a record that fails so for the first time becomes a dead letter at once.
  bool gives_up(const StepFailure& failure) const;

  /// Checks the draft and moves it into the Commit. Errors: kInvalidArgument INVALID_TIMER, COMMIT_TOO_LARGE.
  Result<bus::Commit> build(Plan& plan, StepDraft draft, uint64_t epoch) const;

 private:
  void fail_row(proto::ParkedRow& row, const StepFailure& failure) const;
  /// Parks the row, or gives it up, as its attempts say.
  void settle(uint64_t number, const proto::ParkedRow& row, bool give_up, Plan& plan, bool with_value) const;
  const InputPartition& input_of(const proto::ParkedRow& row) const;

  const Context& context_;
  const Task& task_;
  const bus::Home home_;
};

}  // namespace millrace::worker
