#include "bus/log_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/thread.h"

namespace millrace::bus {

LogKeeper::LogKeeper(CommitPipeline& log, store::Store& store, const Clock& clock, Options options)
    : log_(log), store_(store), clock_(clock), options_(options) {}

LogKeeper::~LogKeeper() {
  stop();
}

void LogKeeper::start(Health& health) {
  heartbeat_ = health.watch("log-keeper", [this] {
    MutexLock lock(mutex_);
    nudged_ = true;
    wake_.notify_all();
  });
  thread_ = std::thread([this] { run(); });
}

void LogKeeper::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  heartbeat_.reset();
}

void LogKeeper::run() {
  name_this_thread("log-keeper");
  ScrubPlace place;
  bool scrubbing = false;
  int64_t next_pass_ns = clock_.steady_ns() + std::chrono::nanoseconds(options_.interval).count();
  int64_t next_round_ms = clock_.wall_ms() + options_.interval.count();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      nudged_ = false;
    }
    heartbeat_->beat();
    Status status;
    if (clock_.steady_ns() >= next_pass_ns) {
      status = run_once();
      next_pass_ns = clock_.steady_ns() + std::chrono::nanoseconds(options_.interval).count();
    }
    if (options_.scrub_interval.count() > 0 && !scrubbing && clock_.wall_ms() >= next_round_ms) {
      place = {};
      scrubbing = true;
      next_round_ms = clock_.wall_ms() + options_.scrub_interval.count();
    }
    if (status && scrubbing) {
      auto more = scrub_some(place);
      if (!more)
        status = tl::unexpected(std::move(more.error()));
      else
        scrubbing = *more;
    }
    if (!status && status.error().code != "STOPPING")
      spdlog::warn("keeping the log in order has to wait: {}", to_string(status.error()));
    if (status && scrubbing) continue;
    MutexLock lock(mutex_);
    const auto left = std::chrono::nanoseconds(std::max<int64_t>(next_pass_ns - clock_.steady_ns(), 0));
    if (!stopping_ && !nudged_) wake_.wait_for(mutex_, left);
  }
}

Status LogKeeper::spend(uint64_t bytes, uint64_t per_second) {
  if (heartbeat_) heartbeat_->beat();
  auto left = std::chrono::nanoseconds(per_second == 0 ? 0 : bytes * 1'000'000'000 / per_second);
  const auto end = std::chrono::steady_clock::now() + left;
  MutexLock lock(mutex_);
  for (;;) {
    if (stopping_) return fail(ErrorKind::kUnavailable, "STOPPING", "the node is stopping");
    left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) return {};
    nudged_ = false;
    wake_.wait_for(mutex_, left);
    if (nudged_ && heartbeat_) heartbeat_->beat();
  }
}

Status LogKeeper::spend_in_pass(uint64_t bytes) {
  MILLRACE_TRY(spend(bytes, options_.io_bytes_per_second));
  if (clock_.steady_ns() < next_retention_ns_) return {};
  MILLRACE_TRY(retain());
  drop_files();
  return {};
}

bool LogKeeper::note_damage(const Error& error) {
  if (error.kind != ErrorKind::kCorruption) return false;
  MutexLock lock(mutex_);
  if (std::find(damages_.begin(), damages_.end(), error.message) != damages_.end()) return true;
  stats_.damages.fetch_add(1, std::memory_order_relaxed);
  spdlog::error("damage was found: {}", error.message);
  if (damages_.size() < kMaxDamages) damages_.push_back(error.message);
  return true;
}

std::vector<std::string> LogKeeper::damages() const {
  MutexLock lock(mutex_);
  return damages_;
}

Status LogKeeper::run_once() {
  targets_.clear();
  drop_files();
  MILLRACE_TRY(retain());
  MILLRACE_TRY(move_stranded());
  MILLRACE_TRY(compact());
  MILLRACE_TRY(retain());
  drop_files();
  stats_.passes.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status LogKeeper::retain() {
  next_retention_ns_ = clock_.steady_ns() + std::chrono::nanoseconds(options_.interval).count();
  // What one round closes the next one may remove.
  for (bool closed_some = true, more = true; more;) {
    auto view = log_.store_view();
    if (!view) return {};
    auto plan = plan_retention(*view, log_.options().log, clock_.wall_ms());
    view.reset();
    if (!plan) {
      if (note_damage(plan.error())) return {};
      return tl::unexpected(std::move(plan.error()));
    }
    closed_ = std::move(plan->closed);
    open_ = std::move(plan->open);
    stats_.segments.store(plan->segments, std::memory_order_relaxed);
    stats_.dead_bytes.store(plan->dead_bytes, std::memory_order_relaxed);
    if (plan->is_empty()) return {};
    const size_t trims = plan->work.trims.size();
    const bool closes = !plan->work.rolls.empty();
    auto receipt = log_.maintain(std::move(plan->work));
    if (!receipt) return tl::unexpected(std::move(receipt.error()));
    stats_.trims.fetch_add(trims, std::memory_order_relaxed);
    stats_.removed_segments.fetch_add(receipt->removed.size(), std::memory_order_relaxed);
    for (const SegmentId& segment : receipt->removed) drops_.push_back({segment, store_.last_sequence()});
    // Not again for what cannot be closed.
    more = trims > 0 || !receipt->removed.empty() || (closes && closed_some);
    closed_some = false;
    MILLRACE_TRY(spend(0, 0));
  }
  return {};
}

/// A removed segment's rows are erased, and compactions would free their space some day; whole files go at once. Only
/// when nobody reads them any more in an older view.
void LogKeeper::drop_files() {
  const uint64_t oldest = store_.oldest_snapshot_sequence();
  // A file holds several segments: everything between two that live goes together.
  std::set<SegmentId> kept = closed_;
  kept.insert(open_.begin(), open_.end());
  for (const Drop& drop : drops_)
    if (oldest < drop.sequence) kept.insert(drop.segment);
  std::erase_if(drops_, [&](const Drop& drop) {
    if (kept.contains(drop.segment)) return false;
    auto [from, to] = segment_bounds(drop.segment);
    const auto next = kept.upper_bound(drop.segment);
    if (next != kept.end() && next->log_class == drop.segment.log_class) to = segment_bounds(*next).first;
    if (next != kept.begin() && std::prev(next)->log_class == drop.segment.log_class)
      from = segment_bounds(*std::prev(next)).second;
    else
      from = log_key(drop.segment.log_class, 0, 0, 0);
    if (auto status = store_.drop_files_in_range(table_of(drop.segment.log_class), from, to); !status)
      spdlog::warn("freeing the files of segment {} of class {}: {}", drop.segment.number, drop.segment.log_class,
                   to_string(status.error()));
    return true;
  });
}

Status LogKeeper::move_stranded() {
  auto view = log_.store_view();
  if (!view) return {};
  auto plan = plan_retention(*view, log_.options().log, clock_.wall_ms());
  view.reset();
  if (!plan) {
    if (note_damage(plan.error())) return {};
    return tl::unexpected(std::move(plan.error()));
  }
  // Many small ones of one segment go together: each time its row is written anew, which names them all.
  for (auto at = plan->stranded.cbegin(); at != plan->stranded.end();) {
    auto moved = move_heads(at, plan->stranded.cend());
    if (!moved) return tl::unexpected(std::move(moved.error()));
    at = *moved;
  }
  return {};
}

Result<LogKeeper::StrandedAt> LogKeeper::move_heads(StrandedAt at, StrandedAt end) {
  const SegmentId source{at->range.log_class, at->range.segment};
  Maintenance work;
  LogClass log_class = 0;
  uint64_t bytes = 0;
  bool whole = true;
  for (; at != end && bytes < kChunkBytes && work.replaces.size() < kMaxHeads; ++at) {
    const bool named = std::any_of(work.replaces.begin(), work.replaces.end(),
                                   [&](const Replace& one) { return one.partition == at->partition; });
    if (SegmentId{at->range.log_class, at->range.segment} != source || named) break;
    auto head = read_head(*at);
    if (!head && !note_damage(head.error())) return tl::unexpected(std::move(head.error()));
    if (!head || !*head) continue;
    if (!work.replaces.empty() && (*head)->log_class != log_class) break;
    log_class = (*head)->log_class;
    bytes += (*head)->replace.source_bytes;
    work.replaces.push_back(std::move((*head)->replace));
    whole = (*head)->whole;
    if (!whole) break;
  }
  if (work.replaces.empty()) return at;
  auto row_bytes = replace(std::move(work), log_class);
  if (!row_bytes) return tl::unexpected(std::move(row_bytes.error()));
  if (!*row_bytes) return whole ? at : std::next(at);  // The next pass looks at what it has become.
  stats_.moved_bytes.fetch_add(bytes, std::memory_order_relaxed);
  MILLRACE_TRY(spend_in_pass(2 * bytes + **row_bytes));
  return at;
}

Result<std::optional<LogKeeper::Head>> LogKeeper::read_head(const Stranded& stranded) {
  auto view = log_.store_view();
  if (!view) return std::nullopt;
  auto topic = view->topics().find(stranded.partition.topic);
  if (topic == view->topics().end()) return std::nullopt;
  const PartitionLog* log = view->partitions().find(topic->second->partition_ids[stranded.partition.partition]);
  // The rest of the range, if there is one.
  std::optional<SegmentRange> range;
  for (size_t i = 0; i < log->ranges() && !range; ++i)
    if (log->range(i).log_class == stranded.range.log_class && log->range(i).segment == stranded.range.segment &&
        log->range(i).next_offset == stranded.range.next_offset)
      range = log->range(i);
  if (!range) return std::nullopt;
  Head head;
  head.log_class = log_class_of(*topic->second);
  const uint64_t offset = std::max(range->first_offset, log->log_start);
  view.reset();
  auto batches = read_chunk(stranded.partition, offset, range->next_offset,
                            std::min<uint64_t>(kChunkBytes, std::max<uint64_t>(range->bytes, 1)));
  if (!batches) return tl::unexpected(std::move(batches.error()));
  if (batches->empty()) return std::nullopt;
  head.replace = {stranded.partition, {range->log_class, range->segment}, range->first_offset, 0, *std::move(batches)};
  for (const Bytes& batch : head.replace.batches) head.replace.source_bytes += batch.size();
  head.whole = static_cast<uint64_t>(read_batch_info(head.replace.batches.back())->next_offset()) >= range->next_offset;
  return head;
}

Result<std::vector<Bytes>> LogKeeper::read_chunk(const TopicPartition& partition, uint64_t offset, uint64_t end,
                                                 size_t max_bytes) {
  std::vector<Bytes> batches;
  auto view = log_.store_view();
  if (!view) return batches;
  auto fetched = view->fetch(partition, offset, max_bytes);
  if (!fetched) {
    // Retention has passed, or the topic is gone.
    if (fetched.error().code == "OFFSET_OUT_OF_RANGE" || fetched.error().code == "UNKNOWN_TOPIC_OR_PARTITION")
      return batches;
    return fetched;
  }
  uint64_t at = offset;
  for (Bytes& batch : *fetched) {
    auto info = check_batch(batch);
    if (!info)
      return fail(ErrorKind::kCorruption, "LOG_DAMAGED",
                  fmt::format("{}, near offset {}: {}", describe(partition), at, info.error().message));
    at = static_cast<uint64_t>(info->next_offset());
    if (static_cast<uint64_t>(info->next_offset()) > end) break;
    batches.push_back(std::move(batch));
  }
  return batches;
}

Result<std::optional<uint64_t>> LogKeeper::replace(Maintenance work, LogClass log_class) {
  uint64_t bytes = 0;
  if (auto target = targets_.find(log_class); target != targets_.end()) work.target = target->second.segment;
  for (const Replace& one : work.replaces) {
    for (const Bytes& batch : one.batches) bytes += batch.size();
    if (work.target == one.source) work.target.reset();
  }
  auto receipt = log_.maintain(std::move(work));
  if (!receipt) {
    targets_.erase(log_class);
    if (receipt.error().code != "LOG_CHANGED" && receipt.error().code != "UNKNOWN_TOPIC_OR_PARTITION")
      return tl::unexpected(std::move(receipt.error()));
    spdlog::debug("the log has changed before it could be rewritten: {}", receipt.error().message);
    return std::nullopt;
  }
  Target& target = targets_[log_class];
  if (target.segment != *receipt->target) target = {*receipt->target, 0};
  target.bytes += bytes;
  if (target.bytes >= log_.options().log.segment_bytes) targets_.erase(log_class);
  return receipt->row_bytes;
}

}  // namespace millrace::bus
