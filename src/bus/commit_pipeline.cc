#include "bus/commit_pipeline.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>

#include "base/thread.h"
#include "bus/record_batch.h"
#include "bus/sequencer.h"
#include "bus/store_view.h"

namespace millrace::bus {
namespace {

void call(const std::function<void(CommitResult)>& done, CommitResult result) {
  if (!done) return;
  try {
    done(std::move(result));
  } catch (const std::exception& error) {
    spdlog::error("the answer to a commit was dropped: {}", error.what());
  }
}

CommitResult unknown(const Error& cause) {
  return fail(ErrorKind::kUnknown, "COMMIT_UNKNOWN",
              "whether the commit is durable is unknown until the node has restarted: " + cause.message);
}

}  // namespace

/// Where one call of submit_and_wait() waits. A group's waiters wake each other, each two more, so that the leader has
/// the cost of one wake-up instead of one for each and goes on with the next group.
class CommitPipeline::Answer {
 public:
  void set(CommitResult result) { result_ = std::move(result); }
  /// By the leader, for itself or for the first of the waiters.
  void hand_over() { answered_.set(); }
  void wake_first(Answer* left, Answer* right) {
    left_ = left;
    right_ = right;
  }
  bool is_set() const { return answered_.is_set(); }
  CommitResult wait() {
    answered_.wait();
    for (Answer* next : {left_, right_})
      if (next != nullptr) next->hand_over();
    return *std::move(result_);
  }

 private:
  std::optional<CommitResult> result_;
  Answer* left_ = nullptr;
  Answer* right_ = nullptr;
  disruptor::OneShot answered_;
};

Result<std::unique_ptr<CommitPipeline>> CommitPipeline::start(store::Store& store, const Clock& clock, Health& health,
                                                              Options options) {
  auto state = recover_log(store, options.log.topic_defaults);
  if (!state) return tl::unexpected(std::move(state.error()));
  auto idempotency = IdempotencyKeys::load(store, clock, options.max_idempotency_keys);
  if (!idempotency) return tl::unexpected(std::move(idempotency.error()));
  // After an unclean stop, so that a reader can tell that offsets may have been cut back. Durable with the first write.
  if (!store.open_report().clean_stop && !store.open_report().created) ++state->leader_epoch;
  auto sequencer = std::make_unique<Sequencer>(store, *std::move(state), *std::move(idempotency), clock, options.log);
  std::unique_ptr<CommitPipeline> pipeline(new CommitPipeline(store, std::move(options), std::move(sequencer)));
  // The event may outlive the ring: a nudge may be on its way while the pipeline goes.
  pipeline->heartbeat_ = health.watch("commit", [event = pipeline->ring_.published_event()] { event->interrupt(); });
  pipeline->thread_ = std::thread([p = pipeline.get()] { p->run(); });
  return pipeline;
}

CommitPipeline::CommitPipeline(store::Store& store, Options options, std::unique_ptr<Sequencer> sequencer)
    : store_(store),
      options_(std::move(options)),
      ring_(options_.slot_count, disruptor::Producers::kMulti),
      next_partition_id_(sequencer->log().next_partition_id),
      sequencer_(std::move(sequencer)),
      watches_(options_.max_watches) {
  ring_.gate_on(done_);
  show();
}

CommitPipeline::~CommitPipeline() {
  if (auto status = close(); !status) spdlog::error("closing the commit pipeline: {}", to_string(status.error()));
}

Status CommitPipeline::check(const Commit& commit) const {
  MILLRACE_TRY(check_commit(commit, options_.max_commit_bytes));
  for (const Append& append : commit.appends)
    if (auto info = check_batch(append.batch); !info) return tl::unexpected(std::move(info.error()));
  return {};
}

Result<int64_t> CommitPipeline::claim(size_t size) {
  if (failed())
    return fail(ErrorKind::kUnavailable, "STORE_FAILED", "the store has failed; the node is to be restarted");
  const auto bytes = static_cast<int64_t>(size);
  auto full = [&](std::string_view bound) {
    return fail(ErrorKind::kExhausted, "COMMIT_QUEUE_FULL",
                fmt::format("too many commits wait ({}: {} commits, {} bytes)", bound, stats_.waiting.load(),
                            stats_.waiting_bytes.load()));
  };
  if (stats_.waiting_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes >
      static_cast<int64_t>(options_.max_waiting_bytes)) {
    stats_.waiting_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return full("memory");
  }
  int64_t position = ring_.try_claim();
  if (position < 0) {
    stats_.waiting_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    if (position == disruptor::RingCore::kClosed)
      return fail(ErrorKind::kUnavailable, "STOPPING", "the node is stopping");
    return full("slots");
  }
  stats_.waiting.fetch_add(1, std::memory_order_relaxed);
  ring_[position].bytes = size;
  return position;
}

Result<int64_t> CommitPipeline::enqueue(Commit& commit) {
  MILLRACE_TRY(check(commit));
  auto position = claim(size_of(commit));
  if (position) ring_[*position].commit.emplace(std::move(commit));
  return position;
}

void CommitPipeline::submit(Commit commit) {
  auto position = enqueue(commit);
  if (position) return ring_.publish(*position);
  stats_.refused.fetch_add(1, std::memory_order_relaxed);
  call(commit.done, tl::unexpected(std::move(position.error())));
}

CommitResult CommitPipeline::submit_and_wait(Commit commit) {
  Answer answer;
  // Only into an idle pipeline: with others on their way, leading a group of one would cost them a sync.
  const bool leads = options_.lead && stats_.waiting.load(std::memory_order_relaxed) == 0 && try_lead();
  commit.done = [this, &answer, leads](CommitResult result) {
    answer.set(std::move(result));
    // Who leads is awake. It may have stopped leading before its commit's turn came, and then waits all the same.
    if (leads)
      answer.hand_over();
    else
      waiters_.push_back(&answer);
  };
  auto position = enqueue(commit);
  if (!position) {
    if (leads) stop_leading();
    stats_.refused.fetch_add(1, std::memory_order_relaxed);
    return tl::unexpected(std::move(position.error()));
  }
  if (!leads) {
    ring_.publish(*position);
    return answer.wait();
  }
  // Nobody needs to be woken for what this thread carries itself.
  ring_.publish_quietly(*position);
  while (!answer.is_set()) {
    if (!carry_group()) break;  // A commit claimed before this one is not published yet.
    stats_.led.fetch_add(1, std::memory_order_relaxed);
  }
  stop_leading();
  return answer.wait();
}

MaintenanceResult CommitPipeline::maintain(Maintenance work) {
  size_t bytes = sizeof(MaintenanceWork);
  for (const Replace& replace : work.replaces)
    for (const Bytes& batch : replace.batches) bytes += batch.size();
  auto position = claim(bytes);
  if (!position) return tl::unexpected(std::move(position.error()));
  MaintenanceReceipt receipt;
  Status status;
  disruptor::OneShot answered;
  auto& slot = ring_[*position];
  slot.maintenance = std::make_unique<MaintenanceWork>(MaintenanceWork{std::move(work), {}, {}});
  slot.maintenance->done = [&, work = slot.maintenance.get()](Status result) {
    status = std::move(result);
    receipt = std::move(work->receipt);
    answered.set();
  };
  ring_.publish(*position);
  answered.wait();
  if (!status) return tl::unexpected(std::move(status.error()));
  return receipt;
}

/// Whoever published meanwhile may have found somebody leading and left it at that: what they published is seen here,
/// since both sides change the same flag, and the commit thread takes over.
void CommitPipeline::stop_leading() {
  leading_.exchange(0, std::memory_order_acq_rel);
  if (ring_.claimed() > done_.get() || nudged_.exchange(false, std::memory_order_acq_rel))
    ring_.published_event()->interrupt();
}

void CommitPipeline::run() {
  name_this_thread("commit");
  uint64_t groups_seen = 0;
  for (;;) {
    auto key = ring_.published_event()->key();
    if (try_lead()) {
      for (gather(); carry_group(); gather()) heartbeat_->beat();
      company_ = 0;
      const bool finished = stopping_.load(std::memory_order_acquire) && done_.get() == ring_.claimed();
      leading_.exchange(0, std::memory_order_acq_rel);
      heartbeat_->beat();
      if (finished) return;
    } else {
      // Another thread leads: the pipeline is alive as long as that one finishes groups.
      uint64_t groups = stats_.groups.load(std::memory_order_relaxed);
      if (groups != groups_seen) heartbeat_->beat();
      groups_seen = groups;
      nudged_.store(true, std::memory_order_release);
      // Whoever led may have stopped just before it could see the nudge, which may be the one that ends this thread.
      if (!is_led()) continue;
    }
    ring_.published_event()->wait(key, {}, [this] { return has_work() && !is_led(); });
  }
}

/// Writers that wait for their answers fall into two halves, of which one gathers while the other is written, so that
/// each commit takes two writes. Waiting shortly for those just answered to come back puts all of them into one. What
/// that costs where they do not come back is less than it spares there: fewer, larger groups.
void CommitPipeline::gather() {
  // A disk that hung once must not make those wait who come after.
  constexpr auto kMostPatience = std::chrono::milliseconds(1);
  if (company_ < 2 || options_.durability != store::Durability::kSync) return;
  // The machine's clock, not clock_: a clock that a test has stopped would never let this end.
  const auto patience = std::min<std::chrono::steady_clock::duration>(last_write_ / 2, kMostPatience);
  const auto end = std::chrono::steady_clock::now() + patience;
  const int64_t everybody = done_.get() + company_;
  while (ring_.claimed() < everybody && !stopping_.load(std::memory_order_relaxed) &&
         std::chrono::steady_clock::now() < end)
    disruptor::yield_core();
}

bool CommitPipeline::carry_group() {
  const int64_t first = done_.get();
  const int64_t end = ring_.highest_published(first, first + static_cast<int64_t>(options_.slot_count));
  if (first == end && !sequencer_->has_garbage()) return false;
  if (failed()) {
    results_.clear();
    for (int64_t position = first; position < end; ++position)
      results_.push_back(unknown({ErrorKind::kUnknown, "STORE_UNKNOWN", "an earlier write failed"}));
    answer_all(results_);
    return first != end;
  }
  results_.clear();
  sequencer_->begin_group(snapshot_);
  const Status room = store_.room();
  for (int64_t position = first; position < end && sequencer_->group_bytes() < options_.max_group_bytes; ++position) {
    Slot& slot = ring_[position];
    if (room || frees_space(slot))
      results_.push_back(sequence(slot));
    else
      results_.push_back(tl::unexpected(room.error()));
  }
  Status written = write_group(room ? store::Purpose::kGrow : store::Purpose::kFreeSpace);
  if (written)
    publish(results_, sequencer_->accept());
  else
    give_up(written.error(), results_);
  // Garbage alone that the store would not erase can wait for the next commit.
  return written || first != end;
}

bool CommitPipeline::frees_space(const Slot& slot) {
  return slot.commit ? bus::frees_space(*slot.commit) : slot.maintenance->work.replaces.empty();
}

/// A maintenance operation's receipt is kept beside it.
CommitResult CommitPipeline::sequence(Slot& slot) {
  if (slot.commit) return sequencer_->sequence(*slot.commit);
  auto receipt = sequencer_->maintain(slot.maintenance->work);
  if (!receipt) return tl::unexpected(std::move(receipt.error()));
  slot.maintenance->receipt = *std::move(receipt);
  return CommitReceipt{};
}

Status CommitPipeline::write_group(store::Purpose purpose) {
  store::WriteBatch& batch = sequencer_->finish_group();
  if (batch.empty()) return {};
  const auto began = std::chrono::steady_clock::now();
  const uint64_t bytes = batch.bytes();
  MILLRACE_TRY(store_.write(batch, options_.durability, purpose));
  last_write_ = std::chrono::steady_clock::now() - began;
  stats_.write_ns.record(static_cast<uint64_t>(std::chrono::nanoseconds(last_write_).count()));
  stats_.bytes.fetch_add(bytes, std::memory_order_relaxed);
  stats_.groups.fetch_add(1, std::memory_order_relaxed);
  stats_.group_commits.record(results_.size());
  return {};
}

void CommitPipeline::publish(std::vector<CommitResult>& results, std::vector<Watches::Moved> moved) {
  show();
  if (!moved.empty()) watches_.moved(moved);
  answer_all(results);
}

/// Nothing of the group may be told as decided: what one commit was refused for may have been written by another that
/// failed here.
void CommitPipeline::give_up(const Error& error, std::vector<CommitResult>& results) {
  sequencer_->drop();
  const bool indeterminate = error.kind == ErrorKind::kUnknown;
  if (indeterminate && !failed_.exchange(true, std::memory_order_acq_rel)) {
    spdlog::critical("the commit pipeline stops: {}", to_string(error));
    if (options_.on_fatal) options_.on_fatal(error);
  }
  for (CommitResult& result : results) result = indeterminate ? unknown(error) : tl::unexpected(error);
  answer_all(results);
}

void CommitPipeline::answer_all(std::vector<CommitResult>& results) {
  int64_t position = done_.get();
  for (CommitResult& result : results) {
    Slot& slot = ring_[position++];
    auto maintenance = std::move(slot.maintenance);
    std::function<void(CommitResult)> done;
    if (slot.commit) done = std::move(slot.commit->done);
    slot.commit.reset();
    stats_.waiting.fetch_sub(1, std::memory_order_relaxed);
    stats_.waiting_bytes.fetch_sub(static_cast<int64_t>(slot.bytes), std::memory_order_relaxed);
    (result ? stats_.accepted : stats_.refused).fetch_add(1, std::memory_order_relaxed);
    if (maintenance)
      maintenance->done(result ? Status{} : Status(tl::unexpected(std::move(result.error()))));
    else
      call(done, std::move(result));
  }
  company_ = ring_.claimed() - done_.get();
  done_.advance(position);
  wake_waiters();
}

void CommitPipeline::wake_waiters() {
  auto waiter = [this](size_t i) { return i < waiters_.size() ? waiters_[i] : nullptr; };
  for (size_t i = 0; i < waiters_.size(); ++i) waiters_[i]->wake_first(waiter(2 * i + 1), waiter(2 * i + 2));
  if (!waiters_.empty()) waiters_.front()->hand_over();
  waiters_.clear();
}

void CommitPipeline::show() {
  snapshot_ = store_.snapshot();
  const LogState& log = sequencer_->log();
  auto view = std::make_shared<StoreView>(snapshot_, log.topics, log.partitions);
  MutexLock lock(view_mutex_);
  view_ = std::move(view);
}

std::shared_ptr<const View> CommitPipeline::view() const {
  MutexLock lock(view_mutex_);
  return view_;
}

std::shared_ptr<const StoreView> CommitPipeline::store_view() const {
  MutexLock lock(view_mutex_);
  return view_;
}

Result<std::unique_ptr<Watch>> CommitPipeline::watch(std::vector<WatchedOffset> offsets, std::function<void()> wake) {
  auto watch = watches_.add(offsets, std::move(wake));
  if (!watch) return watch;
  // Once closed nothing moves any more: as for a partition that is gone, there is nothing to wait for.
  auto newest = view();
  if (!newest || any_passed(*newest, offsets)) Watches::wake_now(**watch);
  return watch;
}

uint32_t CommitPipeline::allocate_partition_ids(uint32_t count) {
  uint32_t first = next_partition_id_.fetch_add(count, std::memory_order_relaxed);
  MILLRACE_ASSERT(first + count <= kMaxPartitionId, "the node has used up its partition ids");
  return first;
}

Status CommitPipeline::close() {
  if (closed_) return {};
  closed_ = true;
  ring_.close();
  stopping_.store(true, std::memory_order_release);
  ring_.published_event()->interrupt();
  thread_.join();
  heartbeat_.reset();
  Status status;
  if (failed()) {
    status = fail(ErrorKind::kUnavailable, "STORE_FAILED", "the store has failed; a restart tells what is durable");
  } else {
    store::WriteBatch batch;
    write_open_segments(sequencer_->log(), batch);
    status = store_.write(batch, store::Durability::kSync, store::Purpose::kFreeSpace);
  }
  MutexLock lock(view_mutex_);
  view_.reset();
  snapshot_.reset();
  return status;
}

}  // namespace millrace::bus
