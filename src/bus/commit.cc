#include "bus/commit.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "proto/bus.pb.h"

namespace millrace::bus {
namespace {

constexpr size_t kDigestBytes = 32;
/// What a row costs beside its key and value: write-ahead log and memtable overhead, roughly.
constexpr size_t kRowOverhead = 32;

Status check_owned(const Home& home, std::string_view what, ByteView key) {
  if (home.owns(key)) return {};
  return fail(ErrorKind::kInternal, "HOME_VIOLATED",
              fmt::format("the {} {} lies outside the commit's home {}", what, to_hex(key), to_hex(home.prefix())));
}

Status check_digest(std::string_view what, ByteView digest) {
  if (digest.size() == kDigestBytes) return {};
  return fail(ErrorKind::kInternal, "INVALID_DIGEST",
              fmt::format("the {} digest has {} bytes instead of {}", what, digest.size(), kDigestBytes));
}

}  // namespace

bool writes_rows(const Commit& commit) {
  return !commit.state.empty() || !commit.timers.empty() || !commit.offsets.empty();
}

bool frees_space(const Commit& commit) {
  return commit.timers.empty() && commit.offsets.empty() && commit.appends.empty() && !commit.idempotency &&
         std::none_of(commit.state.begin(), commit.state.end(), [](const Change& change) { return change.value; });
}

size_t size_of(const Commit& commit) {
  size_t bytes = sizeof(Commit) + commit.home.prefix().size();
  for (const auto& fence : commit.fences) bytes += fence.lease.size() + kRowOverhead;
  for (const auto& condition : commit.conditions) bytes += condition.key.size() + kRowOverhead;
  for (const auto& change : commit.state)
    bytes += change.key.size() + (change.value ? change.value->size() : 0) + kRowOverhead;
  for (const auto& timer : commit.timers)
    bytes += timer.id.size() + (timer.payload ? timer.payload->size() : 0) + kRowOverhead;
  for (const auto& offset : commit.offsets) bytes += offset.group.size() + offset.metadata.size() + kRowOverhead;
  for (const auto& append : commit.appends) bytes += append.batch.size() + kRowOverhead;
  if (commit.idempotency)
    bytes += commit.idempotency->scope_and_key.size() + commit.idempotency->request.size() +
             commit.idempotency->answer.size() + kRowOverhead;
  return bytes;
}

Status check_commit(const Commit& commit, size_t max_bytes) {
  if (size_t bytes = size_of(commit); bytes > max_bytes)
    return fail(ErrorKind::kInvalidArgument, "COMMIT_TOO_LARGE",
                fmt::format("the commit has {} bytes; at most {} are taken", bytes, max_bytes));
  for (const auto& fence : commit.fences) MILLRACE_TRY(check_owned(commit.home, "lease", fence.lease));
  for (const auto& condition : commit.conditions) MILLRACE_TRY(check_owned(commit.home, "condition", condition.key));
  for (const auto& change : commit.state) MILLRACE_TRY(check_owned(commit.home, "row", change.key));
  for (const auto& offset : commit.offsets)
    if (offset.metadata.size() > kMaxOffsetMetadataBytes)
      return fail(ErrorKind::kInvalidArgument, "OFFSET_METADATA_TOO_LARGE",
                  fmt::format("the metadata of an offset of group '{}' has {} bytes; at most {} are taken",
                              offset.group, offset.metadata.size(), kMaxOffsetMetadataBytes));
  if (commit.idempotency) {
    MILLRACE_TRY(check_digest("idempotency key's", commit.idempotency->scope_and_key));
    MILLRACE_TRY(check_digest("request's", commit.idempotency->request));
  }
  return {};
}

Bytes timer_key(const Home& home, int64_t due_ms, ByteView id) {
  Bytes key(home.prefix());
  append_be(key, static_cast<uint64_t>(due_ms));
  key += id;
  return key;
}

Bytes offset_key(const Home& home, const ConsumedOffset& offset) {
  Bytes key(home.prefix());
  key += offset.group;
  key += '\0';
  key += offset.from.topic.view();
  append_be(key, offset.from.partition);
  return key;
}

Bytes offset_row(const ConsumedOffset& offset) {
  proto::OffsetRow row;
  row.set_next_offset(offset.next_offset);
  row.set_leader_epoch(offset.leader_epoch);
  row.set_metadata(offset.metadata);
  row.set_commit_ms(offset.commit_ms);
  return row.SerializeAsString();
}

}  // namespace millrace::bus
