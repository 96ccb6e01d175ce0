#pragma once

#include <fmt/format.h>

#include <string>

#include "base/result.h"
#include "bus/record_batch.h"

namespace millrace::api {

/// Walks the records of one fetched batch from `offset` on. `fn` answers false to stop. Answers the next offset to
/// read. Errors: kCorruption LOG_DAMAGED, kUnsupported COMPRESSED_BATCH.
template <typename Fn>
Result<uint64_t> walk_batch(const Bytes& batch, uint64_t offset, const std::string& topic, uint32_t partition,
                            Fn&& fn) {
  auto info = bus::check_batch(batch);
  if (!info)
    return fail(
        ErrorKind::kCorruption, "LOG_DAMAGED",
        fmt::format("topic '{}', partition {}, near offset {}: {}", topic, partition, offset, info.error().message));
  const auto next_offset = static_cast<uint64_t>(info->next_offset());
  if (info->is_control()) return next_offset;
  if (info->compression() != bus::Compression::kNone)
    return fail(ErrorKind::kUnsupported, "COMPRESSED_BATCH",
                fmt::format("topic '{}', partition {}, offset {}: the batch is compressed; read it with a Kafka client",
                            topic, partition, info->base_offset));
  bus::RecordView record;
  for (bus::RecordReader reader(*info, batch); reader.more();) {
    MILLRACE_TRY(reader.next(record));
    if (static_cast<uint64_t>(record.offset) < offset) continue;
    if (!fn(record)) return static_cast<uint64_t>(record.offset);
  }
  return next_offset;
}

}  // namespace millrace::api
