#include "worker/input.h"

#include <spdlog/fmt/fmt.h>

namespace millrace::worker {
namespace {

tl::unexpected<Error> at_place(const InputPartition& input, int64_t offset, const Error& error) {
  return fail(
      error.code == "COMPRESSED_BATCH" ? ErrorKind::kUnsupported : ErrorKind::kCorruption, error.code,
      fmt::format("topic '{}', partition {}, offset {}: {}", input.topic, input.from.partition, offset, error.message));
}

/// Reads one batch's records from `offset` on. Whether all of them were taken.
Result<bool> read_batch(ByteView batch, const bus::BatchInfo& info, uint64_t offset, size_t max_records,
                        Fetched& fetched) {
  bus::RecordView record;
  for (bus::RecordReader reader(info, batch); reader.more();) {
    MILLRACE_TRY(reader.next(record));
    if (static_cast<uint64_t>(record.offset) < offset) continue;
    if (fetched.records.size() >= max_records) return false;
    fetched.records.push_back(record);
    fetched.next_offset = static_cast<uint64_t>(record.offset) + 1;
  }
  return true;
}

}  // namespace

Result<Fetched> fetch_records(const bus::View& view, const InputPartition& input, uint64_t offset, size_t max_records,
                              size_t max_bytes) {
  auto batches = view.fetch(input.from, offset, max_bytes);
  if (!batches) return tl::unexpected(std::move(batches.error()));
  Fetched fetched{*std::move(batches), {}, offset};
  for (const Bytes& batch : fetched.batches) {
    auto info = bus::check_batch(batch);
    if (!info) return at_place(input, static_cast<int64_t>(offset), info.error());
    if (!info->is_control()) {
      auto whole = read_batch(batch, *info, offset, max_records, fetched);
      if (!whole) return at_place(input, info->base_offset, whole.error());
      if (!*whole) break;
    }
    fetched.next_offset = static_cast<uint64_t>(info->next_offset());
  }
  return fetched;
}

Result<Fetched> read_single(Bytes batch) {
  Fetched fetched;
  fetched.batches.push_back(std::move(batch));
  auto info = bus::check_batch(fetched.batches.front());
  if (!info) return tl::unexpected(std::move(info.error()));
  fetched.records.resize(1);
  bus::RecordReader reader(*info, fetched.batches.front());
  MILLRACE_TRY(reader.next(fetched.records.front()));
  return fetched;
}

Bytes single_batch(const bus::RecordView& record, const std::vector<bus::RecordView::Header>& extra, bool with_value) {
  bus::RecordView copy = record;
  copy.headers.insert(copy.headers.end(), extra.begin(), extra.end());
  if (!with_value) copy.value.reset();
  bus::BatchBuilder builder;
  builder.add(copy);
  return builder.finish();
}

}  // namespace millrace::worker
