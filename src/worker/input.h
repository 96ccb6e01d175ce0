#pragma once

#include <string>
#include <vector>

#include "bus/commit_log.h"
#include "worker/processor.h"

namespace millrace::worker {

/// Partition n of one of a processor's topics, and where its dead letters go.
struct InputPartition {
  std::string topic;
  bus::TopicPartition from;
  bus::TopicPartition dead_letters;
};

/// Records as they lie in the log, and the bytes that they point into.
struct Fetched {
  std::vector<Bytes> batches;
  std::vector<bus::RecordView> records;
  uint64_t next_offset = 0;  ///< behind the last of them; also behind what was no record
};

/// At most `max_records` and about `max_bytes` from `offset` on, at least one when there is one. Offsets need not
/// follow each other. Control batches are passed over. Errors: those of View::fetch (OFFSET_OUT_OF_RANGE is the
/// caller's to handle), kCorruption naming the place, kUnsupported COMPRESSED_BATCH.
Result<Fetched> fetch_records(const bus::View& view, const InputPartition& input, uint64_t offset, size_t max_records,
                              size_t max_bytes);

/// The one record of a batch that parking made.
Result<Fetched> read_single(Bytes batch);

/// A batch of this one record, with `extra` headers behind its own. `with_value` false leaves the value out.
Bytes single_batch(const bus::RecordView& record, const std::vector<bus::RecordView::Header>& extra = {},
                   bool with_value = true);

}  // namespace millrace::worker
