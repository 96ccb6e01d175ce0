#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "bus/commit.h"
#include "bus/commit_log.h"
#include "bus/record_batch.h"

/// What a domain implements to have its events processed: a batch of records or due timers comes in, the draft of one
/// Commit goes out. The worker adds home, fence, consumed offsets and fired timers, so that everything a step does and
/// the fact that it was done become durable together, or not at all. How to write one: docs/workers.md.
namespace millrace::worker {

struct Record {
  std::string_view topic;  ///< one of Processor::inputs()
  uint64_t offset = 0;
  uint32_t attempts = 0;  ///< attempts of this record that failed before
  bus::RecordView record;
};

struct DueTimer {
  int64_t due_ms = 0;
  Bytes id;
  Bytes payload;
  uint32_t attempts = 0;
};

/// The input of one step: records, or timers in due order, never both. Everything lives until step() returns.
struct StepInput {
  const bus::View& view;  ///< shows everything that this partition committed
  std::vector<Record> records;
  std::vector<DueTimer> timers;
  int64_t now_ms = 0;
};

/// What a step wants to happen. Every key lies in the home; appends may go anywhere. Timer ids have 1 to
/// kMaxTimerIdBytes bytes and due times are not negative. The rows `lease` and `parked/..` of table meta are the
/// worker's.
struct StepDraft {
  std::vector<bus::Condition> conditions;  ///< on rows that others may write, too; the lease guards the rest
  std::vector<bus::Change> state;
  std::vector<bus::TimerChange> timers;
  std::vector<bus::Append> appends;
};
inline constexpr size_t kMaxTimerIdBytes = 1024;

/// Why a step failed. Names the record when it is known to be the fault of one (an index into StepInput::records);
/// otherwise the worker finds it by halving the batch.
struct StepFailure {
  StepFailure(Error e) : error(std::move(e)), retry(is_worth_retrying(error)) {}
  StepFailure(Error e, size_t index) : StepFailure(std::move(e)) { record = index; }

  Error error;
  bool retry;  ///< false: a dead letter at once
  std::optional<size_t> record;

  /// What an error's kind says of another attempt with the same input.
  static bool is_worth_retrying(const Error& error) {
    return error.kind != ErrorKind::kInvalidArgument && error.kind != ErrorKind::kUnsupported;
  }
};

using StepResult = tl::expected<StepDraft, StepFailure>;

/// One partition in the hands of one worker, for one epoch of its lease: made when the lease was taken, destroyed when
/// it is lost, never used again. So whatever it caches is of that epoch. One thread at a time calls it. What it throws
/// as std::exception counts as a failure of the step.
class PartitionProcessor {
 public:
  virtual ~PartitionProcessor() = default;

  /// First of all. `view` was taken after the lease was. An error is retried, with back-off, and nothing runs until
  /// then.
  virtual Status load(const bus::View& view) = 0;

  /// Must have no effect but its draft and what dropped() takes back. Longer than the step deadline counts as hung.
  virtual StepResult step(const StepInput& input) = 0;

  /// Of each step() one of the two, before the next one: what the draft said is durable, now caches may show it ..
  virtual void committed(const bus::CommitReceipt& receipt) {}
  /// .. or it never happens (refused, failed, thrown). Not called when the lease is lost: the object goes instead.
  virtual void dropped() {}
};

/// A kind of processing, over all partitions of its inputs. Shared by all workers: const, thread-safe.
class Processor {
 public:
  virtual ~Processor() = default;

  /// Unique on the node; the group under which its offsets are committed. A topic name's alphabet.
  virtual std::string_view name() const = 0;

  /// Topics with the same number of partitions: partition n of the processor reads partition n of each. It waits until
  /// they are there.
  virtual std::vector<std::string> inputs() const = 0;

  /// Where the rows of a partition lie. No two partitions of any processors share a home.
  virtual bus::Home home(uint32_t partition) const;

  /// The topic that takes what was given up; made when it is not there, with the input's number of partitions.
  virtual std::string dead_letter_topic(std::string_view input) const { return std::string(input) + ".dlq"; }

  /// By the worker that took the partition's lease at `epoch`. Must not block.
  virtual std::unique_ptr<PartitionProcessor> make(uint32_t partition, uint64_t epoch) const = 0;
};

}  // namespace millrace::worker
