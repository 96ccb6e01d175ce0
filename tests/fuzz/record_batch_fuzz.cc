#include "base/crc32c.h"
#include "bus/record_batch.h"
#include "bus/topic.h"
#include "bus/varint.h"
#include "tests/fuzz/target.h"

namespace millrace::fuzz {

namespace {

constexpr size_t kCrcAt = 17;
constexpr size_t kCrcFrom = 21;

/// All records of a sound batch, or the fault of the first that is not.
Result<std::vector<bus::RecordView>> read_records(const bus::BatchInfo& info, ByteView batch) {
  std::vector<bus::RecordView> records;
  for (bus::RecordReader reader(info, batch); reader.more();) {
    bus::RecordView record;
    MILLRACE_TRY(reader.next(record));
    records.push_back(std::move(record));
  }
  return records;
}

bool same(const bus::RecordView& a, const bus::RecordView& b) {
  if (a.timestamp_ms != b.timestamp_ms || a.key != b.key || a.value != b.value) return false;
  if (a.headers.size() != b.headers.size()) return false;
  for (size_t i = 0; i < a.headers.size(); ++i)
    if (a.headers[i].name != b.headers[i].name || a.headers[i].value != b.headers[i].value) return false;
  return true;
}

void check_sound(const Bytes& batch) {
  const auto info = bus::check_batch(batch);
  if (!info) return;
  require(info->total_bytes == batch.size(), "a checked batch has nothing behind it");
  (void)bus::first_offset_at(batch, info->max_timestamp_ms, 0);
  bus::Topic topic;
  topic.name = "t";
  topic.settings.cleanup_compact = true;
  (void)bus::check_append(topic, *info, batch);
  const auto records = read_records(*info, batch);
  if (!records) return;
  require(records->size() == static_cast<size_t>(info->record_count), "as many records as the header says");
  if (records->empty()) return;

  bus::BatchBuilder builder;
  for (const bus::RecordView& record : *records) builder.add(record);
  const Bytes built = builder.finish();
  const auto built_info = bus::check_batch(built);
  require(built_info.has_value(), "a built batch is sound");
  const auto again = read_records(*built_info, built);
  require(again && again->size() == records->size(), "its records are all there");
  for (size_t i = 0; i < records->size(); ++i) require(same((*again)[i], (*records)[i]), "and unchanged");
}

Bytes batch_of(const std::vector<bus::RecordView>& records) {
  bus::BatchBuilder builder;
  for (const bus::RecordView& record : records) builder.add(record);
  return builder.finish();
}

}  // namespace

std::vector<std::string> seed_inputs() {
  const bus::RecordView plain{0, 1'700'000'000'000, "key", "value", {}};
  const bus::RecordView tombstone{0, 1'700'000'000'005, "key", std::nullopt, {}};
  const bus::RecordView headers{0, 1'699'999'999'000, std::nullopt, "", {{"h", "v"}, {"", std::nullopt}}};
  const std::string large(300, 'x');
  const bus::RecordView wide{0, -1, large, large, {}};
  return {batch_of({plain}), batch_of({plain, tombstone, headers}), batch_of({wide, plain})};
}

std::vector<std::string> dictionary() {
  return {std::string("\x00\x00\x00\x02", 4),
          "\xff\xff\xff\xff\x0f",
          "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
          "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00",
          "\x01",
          std::string("\x00", 1)};
}

}  // namespace millrace::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  Bytes batch(fuzz::text_of(data, size));
  (void)bus::read_batch_info(batch);
  fuzz::check_sound(batch);
  // Mutations hardly ever keep the checksum; what lies behind it is worth a look as well, since a client can compute
  // it.
  if (const auto info = bus::read_batch_info(batch)) {
    batch.resize(info->total_bytes);
    store_be(batch.data() + fuzz::kCrcAt, crc32c(ByteView(batch).substr(fuzz::kCrcFrom)));
    fuzz::check_sound(batch);
    if (bus::check_batch(batch)) {
      Bytes placed = batch;
      bus::assign_offset(placed, 1ull << 40, 7);
      fuzz::require(bus::check_batch(placed).has_value(), "giving a batch its place leaves the CRC alone");
      bus::assign_append_time(placed, 1'800'000'000'000);
      fuzz::require(bus::check_batch(placed).has_value(), "giving a batch its time makes the CRC anew");
    }
  }
  ByteView rest = fuzz::text_of(data, size);
  if (const auto value = bus::take_varlong(rest)) {
    Bytes written;
    bus::append_varint(written, *value);
    fuzz::require(written.size() == bus::varint_bytes(*value), "varint_bytes says what append_varint writes");
    ByteView again = written;
    fuzz::require(bus::take_varlong(again) == value && again.empty(), "a varint is read back as it was written");
  }
  return 0;
}
