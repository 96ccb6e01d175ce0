#include "bus/sequencer.h"

#include <spdlog/fmt/fmt.h>

#include "bus/record_batch.h"
#include "proto/bus.pb.h"

namespace millrace::bus {
namespace {

using store::Table;

Bytes overlay_key(Table table, ByteView key) {
  Bytes joined(1, static_cast<char>(table));
  joined += key;
  return joined;
}

}  // namespace

Sequencer::Sequencer(const store::Store& store, LogState state, IdempotencyKeys idempotency, const Clock& clock,
                     LogOptions options)
    : store_(store),
      state_(std::move(state)),
      writer_(state_, clock, options),
      idempotency_(std::move(idempotency)),
      topic_defaults_(options.topic_defaults) {}

void Sequencer::begin_group(std::shared_ptr<const store::Snapshot> snapshot) {
  snapshot_ = std::move(snapshot);
  batch_.clear();
}

CommitResult Sequencer::sequence(Commit& commit) {
  if (commit.idempotency) {
    auto known = idempotency_.find(*commit.idempotency, *snapshot_);
    if (!known) return tl::unexpected(std::move(known.error()));
    if (*known) return **std::move(known);
  }
  MILLRACE_TRY(check_fences(commit));
  MILLRACE_TRY(check_conditions(commit));
  auto changes = topic_changes(commit);
  if (!changes) return tl::unexpected(std::move(changes.error()));
  MILLRACE_TRY(check_appends(commit, *changes));
  return apply(commit, *changes);
}

MaintenanceResult Sequencer::maintain(Maintenance& work) {
  return writer_.maintain(work, *snapshot_, batch_);
}

Result<std::optional<Row>> Sequencer::read(Table table, const Bytes& key) const {
  if (auto overlaid = overlay_.find(overlay_key(table, key)); overlaid != overlay_.end()) {
    if (!overlaid->second.payload) return std::nullopt;
    return std::optional<Row>({*overlaid->second.payload, overlaid->second.version});
  }
  return read_row(*snapshot_, table, key);
}

Result<uint64_t> Sequencer::epoch_of(const Bytes& lease) {
  const bool overlaid = overlay_.contains(overlay_key(Table::kMeta, lease));
  if (!overlaid)
    if (auto cached = epochs_.find(lease); cached != epochs_.end()) return cached->second;
  auto row = read(Table::kMeta, lease);
  if (!row) return tl::unexpected(std::move(row.error()));
  proto::LeaseRow parsed;
  if (*row && !parsed.ParseFromString((*row)->value))
    return fail(ErrorKind::kCorruption, "INVALID_LEASE_ROW", fmt::format("lease {} cannot be read", to_hex(lease)));
  if (!overlaid) {
    if (epochs_.size() >= kMaxCachedEpochs) epochs_.clear();
    epochs_[lease] = parsed.epoch();
  }
  return parsed.epoch();
}

Status Sequencer::check_fences(const Commit& commit) {
  for (const Fence& fence : commit.fences) {
    auto epoch = epoch_of(fence.lease);
    if (!epoch) return tl::unexpected(std::move(epoch.error()));
    if (*epoch != fence.epoch)
      return fail(
          ErrorKind::kFenced, "FENCED",
          fmt::format("lease {} is at epoch {}, the commit is of epoch {}", to_hex(fence.lease), *epoch, fence.epoch));
  }
  return {};
}

Status Sequencer::check_conditions(const Commit& commit) const {
  for (const Condition& condition : commit.conditions) {
    auto row = read(condition.table, condition.key);
    if (!row) return tl::unexpected(std::move(row.error()));
    if (Version version = *row ? (*row)->version : kAbsent; version != condition.version)
      return fail(ErrorKind::kConflict, "CONDITION_FAILED",
                  fmt::format("row {} of {} has version {}, the commit expects {}", to_hex(condition.key),
                              store::name_of(condition.table), version, condition.version));
  }
  return {};
}

Result<Sequencer::TopicChanges> Sequencer::topic_changes(const Commit& commit) const {
  TopicChanges changes;
  for (const Change& change : commit.state) {
    if (change.table != Table::kTopics) continue;
    std::optional<Topic> now;
    if (change.value) {
      auto parsed = parse_topic(*change.value, topic_defaults_);
      if (!parsed) return tl::unexpected(std::move(parsed.error()));
      now = *std::move(parsed);
    }
    auto before = read(change.table, change.key);
    if (!before) return tl::unexpected(std::move(before.error()));
    if (*before) {
      auto old = parse_topic((*before)->value, topic_defaults_);
      if (!old) return tl::unexpected(std::move(old.error()));
      if (auto topic = writer_.topic(old->id)) changes.going.push_back(std::move(topic));
    }
    if (now) changes.coming.push_back(*std::move(now));
  }
  if (!changes.coming.empty()) MILLRACE_TRY(writer_.check_room(changes.coming, changes.going));
  return changes;
}

/// Appends see the topics as this very commit leaves them.
Status Sequencer::check_appends(const Commit& commit, const TopicChanges& changes) const {
  for (const Append& append : commit.appends) {
    std::shared_ptr<const Topic> standing;
    const Topic* topic = nullptr;
    for (const Topic& coming : changes.coming)
      if (coming.id == append.to.topic) topic = &coming;
    if (topic == nullptr) {
      for (const auto& going : changes.going)
        if (going->id == append.to.topic) return unknown_partition(append.to);
      standing = writer_.topic(append.to.topic);
      topic = standing.get();
    }
    if (topic == nullptr || append.to.partition >= topic->partitions()) return unknown_partition(append.to);
    auto info = read_batch_info(append.batch);
    if (!info) return tl::unexpected(std::move(info.error()));
    MILLRACE_TRY(check_append(*topic, *info, append.batch));
  }
  return {};
}

CommitReceipt Sequencer::apply(Commit& commit, const TopicChanges& changes) {
  CommitReceipt receipt;
  // The sequence number that the store will give to this commit's first row: it never comes again. Appends may share
  // a row with those of other commits, and have none.
  if (writes_rows(commit)) receipt.version = store_.last_sequence() + batch_.rows() + 1;
  for (const auto& going : changes.going) {
    bool stays = false;
    for (const Topic& coming : changes.coming) stays = stays || coming.id == going->id;
    if (!stays) writer_.remove_topic(*going, batch_);
  }
  for (const Change& change : commit.state) write(change.table, change.key, change.value, receipt.version);
  for (const Topic& coming : changes.coming) writer_.put_topic(coming, batch_);
  for (const TimerChange& timer : commit.timers)
    write(Table::kTimers, timer_key(commit.home, timer.due_ms, timer.id), timer.payload, receipt.version);
  for (const ConsumedOffset& offset : commit.offsets)
    write(Table::kGroups, offset_key(commit.home, offset), offset_row(offset), receipt.version);
  for (Append& append : commit.appends) {
    auto topic = writer_.topic(append.to.topic);
    auto records = static_cast<uint32_t>(read_batch_info(append.batch)->record_count);
    uint64_t base_offset = writer_.append(*topic, append.to.partition, std::move(append.batch), batch_);
    receipt.appends.push_back({append.to, base_offset, records});
  }
  if (commit.idempotency) {
    receipt.answer = commit.idempotency->answer;
    idempotency_.remember(*commit.idempotency, receipt, batch_);
  }
  return receipt;
}

void Sequencer::write(Table table, const Bytes& key, const std::optional<Bytes>& payload, Version version) {
  if (payload) {
    Bytes head;
    append_be(head, version);
    batch_.put(table, key, head, *payload);
  } else {
    batch_.erase(table, key);
  }
  overlay_[overlay_key(table, key)] = Overlaid{payload, payload ? version : kAbsent};
}

store::WriteBatch& Sequencer::finish_group() {
  idempotency_.finish_group(batch_);
  writer_.finish_group(batch_);
  if (!has_written_ && !batch_.empty()) write_started(state_, batch_);
  return batch_;
}

std::vector<Watches::Moved> Sequencer::accept() {
  for (const auto& [key, row] : overlay_)
    if (key.front() == static_cast<char>(Table::kMeta)) epochs_.erase(key.substr(1));
  overlay_.clear();
  has_written_ = has_written_ || !batch_.empty();
  idempotency_.accept();
  snapshot_.reset();
  return writer_.accept();
}

void Sequencer::drop() {
  overlay_.clear();
  idempotency_.drop();
  writer_.drop();
  snapshot_.reset();
  batch_.clear();
}

}  // namespace millrace::bus
