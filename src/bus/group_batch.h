#pragma once

#include <optional>

#include "bus/record_batch.h"

namespace millrace::bus {

/// What one group of commits appends to one partition, as long as it goes into one batch: small batches, such as the
/// single records of many HTTP requests, are joined (design, section 4), because each costs a header of 61 bytes, a key
/// and a row. A batch that stays alone keeps its bytes. By the pipeline's leader.
class GroupBatch {
 public:
  /// A joined batch grows no larger than this, or its topic's max.message.bytes: reading one record means reading its
  /// batch.
  static constexpr size_t kMaxJoinedBytes = 16 * 1024;

  /// `batch` is sound and will begin at `base_offset`.
  GroupBatch(uint64_t base_offset, const BatchInfo& info, Bytes batch);

  /// Takes the records of `batch` behind those it has, if both are plain (no compression, producer, or hole), small,
  /// and readable to the last record. Otherwise false, and nothing has changed.
  bool join(const BatchInfo& info, ByteView batch, size_t max_bytes);

  /// Of the batch that finish() would make now.
  size_t bytes() const { return builder_.empty() ? alone_.size() : builder_.bytes(); }
  uint64_t base_offset() const { return base_offset_; }
  /// The batch, without its place in the log. Once.
  Bytes finish() { return builder_.empty() ? std::move(alone_) : builder_.finish(); }

 private:
  bool begin_joining();

  uint64_t base_offset_;
  BatchInfo info_;  ///< of alone_
  Bytes alone_;     ///< until something is joined
  BatchBuilder builder_;
};

}  // namespace millrace::bus
