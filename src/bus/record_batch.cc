#include "bus/record_batch.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/crc32c.h"
#include "bus/varint.h"

namespace millrace::bus {
namespace {

// Offsets of the fixed fields, from the protocol guide.
constexpr size_t kBaseOffsetAt = 0;
constexpr size_t kLengthAt = 8;
constexpr size_t kLeaderEpochAt = 12;
constexpr size_t kMagicAt = 16;
constexpr size_t kCrcAt = 17;
constexpr size_t kAttributesAt = 21;
constexpr size_t kLastOffsetDeltaAt = 23;
constexpr size_t kBaseTimestampAt = 27;
constexpr size_t kMaxTimestampAt = 35;
constexpr size_t kProducerIdAt = 43;
constexpr size_t kProducerEpochAt = 51;
constexpr size_t kBaseSequenceAt = 53;
constexpr size_t kRecordCountAt = 57;
/// The length field counts what follows it.
constexpr size_t kLengthExcludes = 12;
constexpr int8_t kMagic = 2;

tl::unexpected<Error> corrupt(std::string message) {
  return fail(ErrorKind::kInvalidArgument, "CORRUPT_MESSAGE", std::move(message));
}

uint32_t crc_of(ByteView batch) {
  return crc32c(batch.substr(kAttributesAt));
}

/// A length (or -1 for null) and so many bytes.
bool take_nullable(ByteView& rest, std::optional<ByteView>& out) {
  auto length = take_varint(rest);
  if (!length || *length < -1) return false;
  if (*length == -1) {
    out.reset();
    return true;
  }
  auto size = static_cast<size_t>(*length);
  if (size > rest.size()) return false;
  out = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

/// Null when the headers are sound, else what is wrong with them.
const char* take_headers(ByteView& body, std::vector<RecordView::Header>& headers) {
  auto count = take_varint(body);
  // A header takes at least two bytes: a forged count cannot make us allocate more than the record is long.
  if (!count || *count < 0 || static_cast<size_t>(*count) > body.size() / 2) return "its header count is impossible";
  headers.resize(static_cast<size_t>(*count));
  for (auto& header : headers) {
    std::optional<ByteView> name;
    if (!take_nullable(body, name) || !name) return "a header's name does not fit";
    header.name = *name;
    if (!take_nullable(body, header.value)) return "a header's value does not fit";
  }
  return nullptr;
}

/// Null when `body` is one sound record, else what is wrong with it.
const char* parse_record(ByteView body, const BatchInfo& info, int32_t index, RecordView& record) {
  if (body.empty()) return "it is empty";
  body.remove_prefix(1);  // Attributes: unused in v2.
  auto timestamp_delta = take_varlong(body);
  auto offset_delta = timestamp_delta ? take_varint(body) : std::nullopt;
  if (!offset_delta) return "its deltas do not end";
  if (*offset_delta < index || *offset_delta > info.last_offset_delta) return "its offset is outside the batch";
  record.offset = info.base_offset + *offset_delta;
  int64_t timestamp = 0;
  if (__builtin_add_overflow(info.base_timestamp_ms, *timestamp_delta, &timestamp)) return "its timestamp overflows";
  record.timestamp_ms = info.timestamp_type() == TimestampType::kLogAppendTime ? info.max_timestamp_ms : timestamp;
  if (!take_nullable(body, record.key)) return "its key does not fit";
  if (!take_nullable(body, record.value)) return "its value does not fit";
  if (const char* fault = take_headers(body, record.headers)) return fault;
  return body.empty() ? nullptr : "bytes are left over behind its headers";
}

}  // namespace

Result<BatchInfo> read_batch_info(ByteView bytes) {
  if (bytes.size() < kBatchHeaderBytes)
    return corrupt(
        fmt::format("a record batch has at least {} bytes, this one has {}", kBatchHeaderBytes, bytes.size()));
  const char* data = bytes.data();
  if (int magic = data[kMagicAt]; magic != kMagic)
    return fail(ErrorKind::kInvalidArgument, "UNSUPPORTED_MAGIC",
                fmt::format("record batch has magic {}; only {} (RecordBatch v2) is taken", magic, kMagic));
  auto length = load_be<int32_t>(data + kLengthAt);
  if (length < static_cast<int32_t>(kBatchHeaderBytes - kLengthExcludes) ||
      static_cast<size_t>(length) > bytes.size() - kLengthExcludes)
    return corrupt(fmt::format("record batch says it has {} bytes behind its length, of {} that are there", length,
                               bytes.size() - kLengthExcludes));
  BatchInfo info;
  info.base_offset = load_be<int64_t>(data + kBaseOffsetAt);
  info.total_bytes = static_cast<size_t>(length) + kLengthExcludes;
  info.leader_epoch = load_be<int32_t>(data + kLeaderEpochAt);
  info.crc = load_be<uint32_t>(data + kCrcAt);
  info.attributes = load_be<int16_t>(data + kAttributesAt);
  info.last_offset_delta = load_be<int32_t>(data + kLastOffsetDeltaAt);
  info.base_timestamp_ms = load_be<int64_t>(data + kBaseTimestampAt);
  info.max_timestamp_ms = load_be<int64_t>(data + kMaxTimestampAt);
  info.producer_id = load_be<int64_t>(data + kProducerIdAt);
  info.producer_epoch = load_be<int16_t>(data + kProducerEpochAt);
  info.base_sequence = load_be<int32_t>(data + kBaseSequenceAt);
  info.record_count = load_be<int32_t>(data + kRecordCountAt);
  if (info.record_count < 0 || info.last_offset_delta < 0 || info.record_count - 1 > info.last_offset_delta)
    return corrupt(fmt::format("record batch says it has {} records and a last offset delta of {}", info.record_count,
                               info.last_offset_delta));
  if ((info.attributes & 7) > static_cast<int>(Compression::kZstd))
    return corrupt(fmt::format("record batch has unknown compression {}", info.attributes & 7));
  return info;
}

Result<BatchInfo> check_batch(ByteView batch) {
  auto info = read_batch_info(batch);
  if (!info) return info;
  if (info->total_bytes != batch.size())
    return corrupt(fmt::format("{} bytes follow the record batch of {} bytes; one batch a partition is taken",
                               batch.size() - info->total_bytes, info->total_bytes));
  if (uint32_t crc = crc_of(batch); crc != info->crc)
    return corrupt(fmt::format("record batch says CRC {:08x}, its bytes give {:08x}", info->crc, crc));
  return info;
}

void assign_offset(Bytes& batch, int64_t base_offset, int32_t leader_epoch) {
  store_be(batch.data() + kBaseOffsetAt, base_offset);
  store_be(batch.data() + kLeaderEpochAt, leader_epoch);
}

void assign_append_time(Bytes& batch, int64_t now_ms) {
  auto attributes = load_be<int16_t>(batch.data() + kAttributesAt);
  store_be(batch.data() + kAttributesAt, static_cast<int16_t>(attributes | 8));
  store_be(batch.data() + kMaxTimestampAt, now_ms);
  store_be(batch.data() + kCrcAt, crc_of(batch));
}

RecordReader::RecordReader(const BatchInfo& info, ByteView batch)
    : info_(info), rest_(batch.substr(kBatchHeaderBytes, info.total_bytes - kBatchHeaderBytes)) {}

Status RecordReader::next(RecordView& record) {
  if (info_.compression() != Compression::kNone)
    return fail(
        ErrorKind::kUnsupported, "COMPRESSED_BATCH",
        fmt::format("the batch at offset {} is compressed; its records cannot be read here", info_.base_offset));
  auto corrupt_record = [&](const char* what) {
    return fail(ErrorKind::kCorruption, "CORRUPT_RECORD",
                fmt::format("record {} of the batch at offset {}: {}", read_, info_.base_offset, what));
  };
  auto length = take_varint(rest_);
  if (!length || *length < 0 || static_cast<size_t>(*length) > rest_.size())
    return corrupt_record("its length reaches beyond the batch");
  ByteView body = rest_.substr(0, static_cast<size_t>(*length));
  rest_.remove_prefix(body.size());
  if (const char* fault = parse_record(body, info_, read_, record)) return corrupt_record(fault);
  ++read_;
  if (!more() && !rest_.empty()) return corrupt_record("bytes are left over behind the last record");
  return {};
}

void BatchBuilder::add(const RecordView& record) {
  add_at(count_, record);
}

void BatchBuilder::add_at(int32_t offset_delta, const RecordView& record) {
  if (count_ == 0) {
    max_timestamp_ms_ = record.timestamp_ms;
    if (!has_base_timestamp_) base_timestamp_ms_ = record.timestamp_ms;
  }
  max_timestamp_ms_ = std::max(max_timestamp_ms_, record.timestamp_ms);

  auto append_nullable = [this](const std::optional<ByteView>& bytes) {
    append_varint(scratch_, bytes ? static_cast<int64_t>(bytes->size()) : -1);
    if (bytes) scratch_ += *bytes;
  };
  scratch_.clear();
  scratch_ += '\0';
  append_varint(scratch_, record.timestamp_ms - base_timestamp_ms_);
  append_varint(scratch_, offset_delta);
  append_nullable(record.key);
  append_nullable(record.value);
  append_varint(scratch_, static_cast<int64_t>(record.headers.size()));
  for (const auto& header : record.headers) {
    append_nullable(header.name);
    append_nullable(header.value);
  }
  append_varint(records_, static_cast<int64_t>(scratch_.size()));
  records_ += scratch_;
  ++count_;
}

Bytes BatchBuilder::finish() {
  MILLRACE_ASSERT(count_ > 0, "a new record batch has at least one record");
  return finish_at(0, 0, count_ - 1, 0);
}

Bytes BatchBuilder::finish_at(int64_t base_offset, int32_t leader_epoch, int32_t last_offset_delta,
                              int16_t attributes) {
  if (count_ == 0) max_timestamp_ms_ = -1;
  Bytes batch(kBatchHeaderBytes, '\0');
  batch.reserve(bytes());
  batch += records_;
  char* data = batch.data();
  store_be(data + kLengthAt, static_cast<int32_t>(batch.size() - kLengthExcludes));
  data[kMagicAt] = kMagic;
  store_be(data + kBaseOffsetAt, base_offset);
  store_be(data + kLeaderEpochAt, leader_epoch);
  store_be(data + kAttributesAt, attributes);
  store_be(data + kLastOffsetDeltaAt, last_offset_delta);
  store_be(data + kBaseTimestampAt, base_timestamp_ms_);
  store_be(data + kMaxTimestampAt, max_timestamp_ms_);
  store_be(data + kProducerIdAt, kNoProducerId);
  store_be(data + kProducerEpochAt, int16_t{-1});
  store_be(data + kBaseSequenceAt, int32_t{-1});
  store_be(data + kRecordCountAt, count_);
  store_be(data + kCrcAt, crc_of(batch));
  records_.clear();
  count_ = 0;
  base_timestamp_ms_ = 0;
  has_base_timestamp_ = false;
  return batch;
}

Result<std::optional<uint64_t>> first_offset_at(ByteView batch, int64_t timestamp_ms, uint64_t from) {
  auto info = read_batch_info(batch);
  if (!info) return tl::unexpected(std::move(info.error()));
  if (info->max_timestamp_ms < timestamp_ms) return std::nullopt;
  if (info->compression() != Compression::kNone || info->timestamp_type() == TimestampType::kLogAppendTime)
    return std::max(static_cast<uint64_t>(info->base_offset), from);
  RecordView record;
  for (RecordReader reader(*info, batch); reader.more();) {
    MILLRACE_TRY(reader.next(record));
    const auto offset = static_cast<uint64_t>(record.offset);
    if (offset >= from && record.timestamp_ms >= timestamp_ms) return offset;
  }
  return std::nullopt;
}

size_t record_bytes_bound(const RecordView& record) {
  constexpr size_t kVarint = 5, kVarlong = 10;
  size_t bytes = kVarint + 1 + kVarlong + kVarint + 3 * kVarint;
  if (record.key) bytes += record.key->size();
  if (record.value) bytes += record.value->size();
  for (const auto& header : record.headers)
    bytes += 2 * kVarint + header.name.size() + (header.value ? header.value->size() : 0);
  return bytes;
}

}  // namespace millrace::bus
