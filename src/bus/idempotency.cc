#include "bus/idempotency.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "proto/bus.pb.h"

namespace millrace::bus {
namespace {

using store::Table;

/// Row of meta: how many keys a bucket has, u64.
constexpr ByteView kCountPrefix = "idempotency/count/";

Bytes count_key(uint32_t bucket) {
  Bytes key(kCountPrefix);
  append_be(key, bucket);
  return key;
}

Bytes row_key(uint32_t bucket, ByteView digest) {
  Bytes key;
  append_be(key, bucket);
  key += digest;
  return key;
}

}  // namespace

Result<IdempotencyKeys> IdempotencyKeys::load(const store::Store& store, const Clock& clock, size_t max_keys) {
  IdempotencyKeys keys(clock, max_keys);
  auto snapshot = store.snapshot();
  auto rows = snapshot->scan(Table::kMeta, kCountPrefix, prefix_end(kCountPrefix));
  for (rows->seek_to_first(); rows->valid(); rows->next()) {
    if (rows->key().size() != kCountPrefix.size() + 4 || rows->value().size() != 8)
      return fail(ErrorKind::kCorruption, "ROW_DAMAGED",
                  fmt::format("row {} of meta is malformed", to_hex(rows->key())));
    keys.counts_[load_be<uint32_t>(rows->key().data() + kCountPrefix.size())] = load_be<uint64_t>(rows->value().data());
  }
  MILLRACE_TRY(rows->status());
  return keys;
}

uint32_t IdempotencyKeys::current_bucket() const {
  auto now = static_cast<uint32_t>(std::max<int64_t>(clock_->wall_ms(), 0) / kBucketMs);
  return counts_.empty() ? now : std::max(now, counts_.rbegin()->first);
}

Result<std::optional<CommitReceipt>> IdempotencyKeys::find(const IdempotencyKey& key,
                                                           const store::Snapshot& snapshot) const {
  auto answer = [&](ByteView row) -> Result<std::optional<CommitReceipt>> {
    auto receipt = replay(key, row);
    if (!receipt) return tl::unexpected(std::move(receipt.error()));
    return std::optional<CommitReceipt>(*std::move(receipt));
  };
  if (auto drafted = drafted_.find(key.scope_and_key); drafted != drafted_.end()) return answer(drafted->second);
  const uint32_t current = current_bucket();
  for (auto bucket = counts_.rbegin(); bucket != counts_.rend() && bucket->first + kBucketsBefore >= current;
       ++bucket) {
    auto row = snapshot.get(Table::kIdempotency, row_key(bucket->first, key.scope_and_key));
    if (!row) return tl::unexpected(std::move(row.error()));
    if (!*row) continue;
    proto::IdempotencyRow parsed;
    // The newest row of a key comes first; when that is too old, so are the others.
    if (parsed.ParseFromString(**row) && clock_->wall_ms() - parsed.created_ms() > kIdempotencyWindowMs) break;
    return answer(**row);
  }
  if (count() + drafted_.size() >= max_keys_)
    return fail(ErrorKind::kExhausted, "IDEMPOTENCY_FULL",
                fmt::format("{} idempotency keys are remembered; no more can be for now", max_keys_));
  return std::nullopt;
}

Result<CommitReceipt> IdempotencyKeys::replay(const IdempotencyKey& key, ByteView row) const {
  proto::IdempotencyRow parsed;
  if (!parsed.ParseFromArray(row.data(), static_cast<int>(row.size())))
    return fail(ErrorKind::kCorruption, "ROW_DAMAGED",
                fmt::format("the row of idempotency key {} cannot be read", to_hex(key.scope_and_key)));
  if (parsed.request_digest() != key.request)
    return fail(ErrorKind::kConflict, "IDEMPOTENCY_KEY_REUSED", "the idempotency key was used for another request");
  CommitReceipt receipt;
  receipt.version = parsed.version();
  receipt.answer = parsed.answer();
  receipt.replayed = true;
  for (const auto& append : parsed.appends()) {
    TopicPartition to;
    std::copy_n(append.topic().begin(), std::min(append.topic().size(), to.topic.bytes.size()), to.topic.bytes.begin());
    to.partition = append.partition();
    receipt.appends.push_back({to, append.base_offset(), append.records()});
  }
  return receipt;
}

void IdempotencyKeys::remember(const IdempotencyKey& key, const CommitReceipt& receipt, store::WriteBatch& batch) {
  proto::IdempotencyRow row;
  row.set_request_digest(key.request);
  row.set_answer(key.answer);
  row.set_created_ms(clock_->wall_ms());
  row.set_version(receipt.version);
  for (const auto& appended : receipt.appends) {
    auto* out = row.add_appends();
    out->set_topic(Bytes(appended.to.topic.view()));
    out->set_partition(appended.to.partition);
    out->set_base_offset(appended.base_offset);
    out->set_records(appended.records);
  }
  Bytes value = row.SerializeAsString();
  if (drafted_.empty()) drafted_bucket_ = current_bucket();
  batch.put(Table::kIdempotency, row_key(drafted_bucket_, key.scope_and_key), value);
  drafted_[key.scope_and_key] = std::move(value);
}

void IdempotencyKeys::finish_group(store::WriteBatch& batch) {
  if (drafted_.empty()) return;
  const uint32_t current = drafted_bucket_;
  drafted_counts_ = counts_;
  uint64_t& count = (*drafted_counts_)[current];
  count += drafted_.size();
  Bytes value;
  append_be(value, count);
  batch.put(Table::kMeta, count_key(current), value);
  while (drafted_counts_->begin()->first + kBucketsBefore < current) {
    uint32_t old = drafted_counts_->begin()->first;
    batch.erase_range(Table::kIdempotency, row_key(old, ""), row_key(old + 1, ""));
    batch.erase(Table::kMeta, count_key(old));
    drafted_counts_->erase(drafted_counts_->begin());
  }
}

void IdempotencyKeys::accept() {
  if (drafted_counts_) counts_ = std::move(*drafted_counts_);
  drop();
}

void IdempotencyKeys::drop() {
  drafted_.clear();
  drafted_counts_.reset();
}

size_t IdempotencyKeys::count() const {
  const uint32_t current = current_bucket();
  size_t count = 0;
  for (const auto& [bucket, keys] : counts_)
    if (bucket + kBucketsBefore >= current) count += keys;
  return count;
}

}  // namespace millrace::bus
