#include "bus/memory_commit_log.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "bus/record_batch.h"
#include "proto/bus.pb.h"

namespace millrace::bus {
namespace {

struct Partition {
  /// By base offset.
  std::map<uint64_t, Bytes> batches;
  PartitionState state;
};

struct Answered {
  int64_t at_ms;
  Bytes request;
  CommitReceipt receipt;
};

}  // namespace

struct MemoryCommitLog::State {
  using Table = std::map<Bytes, Row, std::less<>>;
  std::map<store::Table, Table> tables;
  std::map<TopicPartition, Partition> partitions;
  std::map<Uuid, Topic> topics;
  std::map<Bytes, Answered> idempotency;
  Version last_version = 0;

  const Row* find(store::Table table, ByteView key) const {
    auto rows = tables.find(table);
    if (rows == tables.end()) return nullptr;
    auto row = rows->second.find(key);
    return row == rows->second.end() ? nullptr : &row->second;
  }

  void write(store::Table table, const Bytes& key, const std::optional<Bytes>& value, Version version) {
    if (value)
      tables[table][key] = Row{*value, version};
    else
      tables[table].erase(key);
  }

  /// A topic's partitions exist exactly as long as its row says so.
  void follow_topic(const Bytes& key, const std::optional<Bytes>& value, const TopicSettings& defaults,
                    std::vector<Watches::Moved>& moved) {
    std::optional<Topic> now;
    if (value) now = *parse_topic(*value, defaults);
    if (const Row* old = find(store::Table::kTopics, key)) {
      Uuid id = parse_topic(old->value, defaults)->id;
      if (!now || now->id != id) {
        topics.erase(id);
        std::erase_if(partitions, [&](const auto& entry) {
          if (entry.first.topic == id) moved.push_back({entry.first, std::nullopt});
          return entry.first.topic == id;
        });
      }
    }
    if (!now) return;
    for (uint32_t i = 0; i < now->partitions(); ++i) partitions.try_emplace(TopicPartition{now->id, i});
    topics[now->id] = *std::move(now);
  }
};

namespace {

/// A whole copy of the state: immutable without any cleverness.
template <typename State>
class MemoryView final : public View {
 public:
  explicit MemoryView(const State& state) : state_(state) {}

  Result<std::optional<Row>> get(store::Table table, ByteView key) const override {
    const Row* row = state_.find(table, key);
    return row ? std::optional<Row>(*row) : std::nullopt;
  }

  Result<std::vector<std::pair<Bytes, Row>>> list(store::Table table, ByteView prefix, ByteView after,
                                                  size_t limit) const override {
    std::vector<std::pair<Bytes, Row>> found;
    auto rows = state_.tables.find(table);
    if (rows == state_.tables.end()) return found;
    auto row = after < prefix ? rows->second.lower_bound(prefix) : rows->second.upper_bound(after);
    for (; row != rows->second.end() && found.size() < limit && row->first.starts_with(prefix); ++row)
      found.push_back(*row);
    return found;
  }

  std::optional<PartitionState> partition(const TopicPartition& partition) const override {
    auto found = state_.partitions.find(partition);
    return found == state_.partitions.end() ? std::nullopt : std::optional(found->second.state);
  }

  Result<std::vector<Bytes>> fetch(const TopicPartition& partition, uint64_t offset, size_t max_bytes) const override {
    auto found = state_.partitions.find(partition);
    if (found == state_.partitions.end()) return unknown_partition(partition);
    const auto& [batches, state] = found->second;
    if (offset < state.log_start || offset > state.high_watermark) return offset_out_of_range(partition, offset, state);
    std::vector<Bytes> fetched;
    if (offset == state.high_watermark) return fetched;
    size_t bytes = 0;
    for (auto batch = std::prev(batches.upper_bound(offset)); batch != batches.end(); ++batch) {
      bytes += batch->second.size();
      if (!fetched.empty() && bytes > max_bytes) break;
      fetched.push_back(batch->second);
    }
    return fetched;
  }

  Result<uint64_t> offset_for_time(const TopicPartition& partition, int64_t timestamp_ms) const override {
    auto found = state_.partitions.find(partition);
    if (found == state_.partitions.end()) return unknown_partition(partition);
    for (const auto& [base_offset, batch] : found->second.batches) {
      auto offset = first_offset_at(batch, timestamp_ms, found->second.state.log_start);
      if (!offset) return tl::unexpected(offset.error());
      if (*offset) return **offset;
    }
    return found->second.state.high_watermark;
  }

 private:
  const State state_;
};

}  // namespace

MemoryCommitLog::MemoryCommitLog(const Clock& clock, Options options)
    : clock_(clock), options_(options), watches_(options.max_watches), state_(std::make_unique<State>()) {}
MemoryCommitLog::~MemoryCommitLog() = default;

void MemoryCommitLog::submit(Commit commit) {
  auto done = std::move(commit.done);
  CommitResult result = submit_and_wait(std::move(commit));
  if (done) done(std::move(result));
}

CommitResult MemoryCommitLog::submit_and_wait(Commit commit) {
  MILLRACE_TRY(check_commit(commit, options_.max_commit_bytes));
  for (const auto& append : commit.appends)
    if (auto info = check_batch(append.batch); !info) return tl::unexpected(std::move(info.error()));
  std::vector<Watches::Moved> moved;
  CommitResult result;
  {
    MutexLock lock(mutex_);
    result = apply(commit, moved);
  }
  watches_.moved(moved);
  return result;
}

std::shared_ptr<const View> MemoryCommitLog::view() const {
  MutexLock lock(mutex_);
  if (!view_) view_ = std::make_shared<MemoryView<State>>(*state_);
  return view_;
}

Result<std::unique_ptr<Watch>> MemoryCommitLog::watch(std::vector<WatchedOffset> offsets, std::function<void()> wake) {
  auto watch = watches_.add(offsets, std::move(wake));
  if (!watch) return watch;
  if (any_passed(*view(), offsets)) Watches::wake_now(**watch);
  return watch;
}

uint32_t MemoryCommitLog::allocate_partition_ids(uint32_t count) {
  MutexLock lock(mutex_);
  uint32_t first = next_partition_id_;
  next_partition_id_ += count;
  return first;
}

void MemoryCommitLog::trim(const Trim& trim) {
  MutexLock lock(mutex_);
  auto found = state_->partitions.find(trim.partition);
  if (found == state_->partitions.end()) return;
  auto& [batches, state] = found->second;
  state.log_start = std::max(state.log_start, std::min(trim.log_start, state.high_watermark));
  while (!batches.empty() &&
         static_cast<uint64_t>(read_batch_info(batches.begin()->second)->next_offset()) <= state.log_start) {
    state.bytes -= batches.begin()->second.size();
    batches.erase(batches.begin());
  }
  view_.reset();
}

Status MemoryCommitLog::check(const Commit& commit) const {
  for (const auto& fence : commit.fences) {
    proto::LeaseRow lease;
    const Row* row = state_->find(store::Table::kMeta, fence.lease);
    if (row && !lease.ParseFromString(row->value))
      return fail(ErrorKind::kCorruption, "INVALID_LEASE_ROW",
                  fmt::format("lease {} cannot be read", to_hex(fence.lease)));
    if (lease.epoch() != fence.epoch)
      return fail(ErrorKind::kFenced, "FENCED",
                  fmt::format("lease {} is at epoch {}, the commit is of epoch {}", to_hex(fence.lease), lease.epoch(),
                              fence.epoch));
  }
  for (const auto& condition : commit.conditions) {
    const Row* row = state_->find(condition.table, condition.key);
    if (Version version = row ? row->version : kAbsent; version != condition.version)
      return fail(ErrorKind::kConflict, "CONDITION_FAILED",
                  fmt::format("row {} of {} has version {}, the commit expects {}", to_hex(condition.key),
                              store::name_of(condition.table), version, condition.version));
  }
  return check_topics(commit);
}

/// Appends see the topics as this very commit leaves them.
Status MemoryCommitLog::check_topics(const Commit& commit) const {
  std::map<Uuid, Topic> topics = state_->topics;
  for (const auto& change : commit.state) {
    if (change.table != store::Table::kTopics) continue;
    if (const Row* old = state_->find(change.table, change.key))
      topics.erase(parse_topic(old->value, options_.topic_defaults)->id);
    if (!change.value) continue;
    auto topic = parse_topic(*change.value, options_.topic_defaults);
    if (!topic) return tl::unexpected(std::move(topic.error()));
    topics[topic->id] = *topic;
  }
  if (topics.size() > options_.max_topics && topics.size() > state_->topics.size())
    return fail(ErrorKind::kExhausted, "TOO_MANY_TOPICS",
                fmt::format("at most {} topics are kept", options_.max_topics));
  size_t partitions = 0;
  for (const auto& [id, topic] : topics) partitions += topic.partitions();
  if (partitions > options_.max_partitions && partitions > state_->partitions.size())
    return fail(ErrorKind::kExhausted, "TOO_MANY_PARTITIONS",
                fmt::format("at most {} partitions are kept", options_.max_partitions));
  for (const auto& append : commit.appends) {
    auto topic = topics.find(append.to.topic);
    if (topic == topics.end() || append.to.partition >= topic->second.partitions()) return unknown_partition(append.to);
    MILLRACE_TRY(check_append(topic->second, *read_batch_info(append.batch), append.batch));
  }
  return {};
}

CommitResult MemoryCommitLog::apply(const Commit& commit, std::vector<Watches::Moved>& moved) {
  forget_old_idempotency_keys();
  if (commit.idempotency) {
    auto answered = state_->idempotency.find(commit.idempotency->scope_and_key);
    if (answered != state_->idempotency.end()) {
      if (answered->second.request != commit.idempotency->request)
        return fail(ErrorKind::kConflict, "IDEMPOTENCY_KEY_REUSED", "the idempotency key was used for another request");
      CommitReceipt receipt = answered->second.receipt;
      receipt.replayed = true;
      return receipt;
    }
  }
  MILLRACE_TRY(check(commit));
  if (commit.idempotency && state_->idempotency.size() >= options_.max_idempotency_keys)
    return fail(ErrorKind::kExhausted, "IDEMPOTENCY_FULL",
                fmt::format("{} idempotency keys are remembered; no more can be for now", state_->idempotency.size()));

  view_.reset();
  CommitReceipt receipt;
  if (writes_rows(commit)) receipt.version = ++state_->last_version;
  for (const auto& change : commit.state) {
    if (change.table == store::Table::kTopics)
      state_->follow_topic(change.key, change.value, options_.topic_defaults, moved);
    state_->write(change.table, change.key, change.value, receipt.version);
  }
  for (const auto& timer : commit.timers)
    state_->write(store::Table::kTimers, timer_key(commit.home, timer.due_ms, timer.id), timer.payload,
                  receipt.version);
  for (const auto& offset : commit.offsets)
    state_->write(store::Table::kGroups, offset_key(commit.home, offset), offset_row(offset), receipt.version);
  for (const auto& append : commit.appends) {
    auto& [batches, state] = state_->partitions.at(append.to);
    Bytes batch = append.batch;
    if (state_->topics.at(append.to.topic).settings.timestamp_type == TimestampType::kLogAppendTime)
      assign_append_time(batch, clock_.wall_ms());
    assign_offset(batch, static_cast<int64_t>(state.high_watermark), 0);
    auto info = read_batch_info(batch);
    receipt.appends.push_back({append.to, state.high_watermark, static_cast<uint32_t>(info->record_count)});
    state.bytes += batch.size();
    batches.emplace(state.high_watermark, std::move(batch));
    state.high_watermark = static_cast<uint64_t>(info->next_offset());
    moved.push_back({append.to, state.high_watermark});
  }
  if (commit.idempotency) {
    receipt.answer = commit.idempotency->answer;
    state_->idempotency[commit.idempotency->scope_and_key] = {clock_.wall_ms(), commit.idempotency->request, receipt};
  }
  return receipt;
}

void MemoryCommitLog::forget_old_idempotency_keys() {
  int64_t oldest = clock_.wall_ms() - kIdempotencyWindowMs;
  std::erase_if(state_->idempotency, [oldest](const auto& entry) { return entry.second.at_ms < oldest; });
}

}  // namespace millrace::bus
