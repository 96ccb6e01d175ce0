#include "daemon/node.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/backups.h"
#include "api/groups.h"
#include "api/records.h"
#include "api/topics.h"
#include "api/workers.h"
#include "base/timer_thread.h"
#include "base/version.h"
#include "bus/commit_pipeline.h"
#include "bus/log_keeper.h"
#include "config/load.h"
#include "daemon/metrics.h"
#include "group/consumers.h"
#include "group/coordinator.h"
#include "http/problem.h"
#include "http/routes/routes.h"
#include "http/server.h"
#include "store/store.h"
#include "worker/worker_pool.h"

namespace millrace::daemon {
namespace {

/// The parts in the order in which they depend on each other; destruction runs backwards.
class WholeNode final : public Node {
 public:
  WholeNode(const config::Config& config, Health& health, OnFatal on_fatal, Options options)
      : config_(config), health_(health), on_fatal_(std::move(on_fatal)), options_(std::move(options)) {}
  Status start();
  void stop() override;
  void reload(const config::Config&) override {}

 private:
  Status make_directory() const;
  Status open_store();
  Status start_bus();
  Status start_groups();
  Status start_workers();
  void stop_workers();
  Status start_http();
  std::string info() const;
  Status ready() const;
  bus::TopicSettings topic_defaults() const;

  const config::Config config_;
  Health& health_;
  const OnFatal on_fatal_;
  const Options options_;
  const Clock& clock_ = SystemClock::instance();
  const int64_t started_ms_ = clock_.wall_ms();
  std::atomic<bool> stopping_{false};
  bool hanging_ = false;  ///< workers are left behind

  std::unique_ptr<store::Store> store_;
  /// Above the pipeline, whose last answers it takes.
  std::unique_ptr<group::Coordinator> coordinator_;
  std::unique_ptr<bus::CommitPipeline> pipeline_;
  std::unique_ptr<bus::LogKeeper> keeper_;
  std::unique_ptr<TimerThread> timer_;
  std::unique_ptr<group::Consumers> consumers_;
  std::unique_ptr<api::TopicsApi> topics_;
  std::unique_ptr<api::RecordsApi> records_;
  std::unique_ptr<api::BackupsApi> backups_;
  std::unique_ptr<api::GroupsApi> groups_;
  std::unique_ptr<worker::WorkerPool> pool_;
  std::unique_ptr<api::WorkersApi> workers_;
  std::unique_ptr<http::Server> server_;
};

Status WholeNode::start() {
  MILLRACE_TRY(make_directory());
  MILLRACE_TRY(open_store());
  MILLRACE_TRY(start_bus());
  MILLRACE_TRY(start_groups());
  MILLRACE_TRY(start_workers());
  return start_http();
}

Status WholeNode::make_directory() const {
  const auto& directory = config_.node.data_directory;
  std::error_code error;
  bool created = std::filesystem::create_directories(directory, error);
  if (error)
    return fail(ErrorKind::kIo, "FILE_IO",
                fmt::format("cannot create the data directory {}: {}", directory.string(), error.message()));
  if (created) ::chmod(directory.c_str(), 0700);
  return {};
}

Status WholeNode::open_store() {
  store::Options options;
  options.directory = config_.node.data_directory;
  options.reserve_bytes = config_.storage.reserve_bytes;
  options.max_wal_bytes = config_.storage.max_wal_bytes;
  options.max_wal_rows = config_.storage.max_wal_rows;
  // A log is left for the next one at half of its bound, and the last group of commits may take it beyond.
  if (config_.storage.prepare_wal && config_.storage.commit_durability == config::CommitDurability::kSync)
    options.prepared_wal_bytes = options.max_wal_bytes / 2 + (1 << 20);
  options.block_cache_bytes = config_.storage.block_cache_bytes;
  options.accept_loss = options_.accept_loss;
  auto store = store::Store::open(std::move(options));
  if (!store) return tl::unexpected(std::move(store.error()));
  store_ = *std::move(store);
  const store::OpenReport& report = store_->open_report();
  spdlog::info("store {}: {}, {} rows, {} bytes of log replayed", config_.node.data_directory.string(),
               report.created      ? "created"
               : report.clean_stop ? "was stopped cleanly"
                                   : "was not stopped cleanly",
               report.recovered_sequence, report.wal_bytes);
  if (report.torn_bytes > 0)
    spdlog::warn("store {}: {} bytes of a write that was not finished were dropped from the log's end",
                 config_.node.data_directory.string(), report.torn_bytes);
  return {};
}

bus::TopicSettings WholeNode::topic_defaults() const {
  bus::TopicSettings defaults;
  defaults.max_message_bytes = static_cast<int64_t>(config_.bus.max_message_bytes);
  return defaults;
}

Status WholeNode::start_bus() {
  const config::BusConfig& bus = config_.bus;
  bus::CommitPipeline::Options options;
  options.slot_count = bus.commit_ring_slot_count;
  options.max_waiting_bytes = bus.commit_ring_max_memory_bytes;
  options.max_commit_bytes = bus.commit_max_bytes;
  options.max_group_bytes = bus.commit_group_max_bytes;
  options.max_idempotency_keys = bus.idempotency_max_keys;
  options.durability = config_.storage.commit_durability == config::CommitDurability::kSync ? store::Durability::kSync
                                                                                            : store::Durability::kAsync;
  options.lead = bus.commit_lead;
  options.log.segment_bytes = bus.segment_bytes;
  options.log.segment_ms = bus.segment_roll_after.count();
  options.log.max_topics = bus.max_topics;
  options.log.max_partitions = bus.max_partitions;
  options.log.topic_defaults = topic_defaults();
  options.on_fatal = on_fatal_;
  auto pipeline = bus::CommitPipeline::start(*store_, clock_, health_, std::move(options));
  if (!pipeline) return tl::unexpected(std::move(pipeline.error()));
  pipeline_ = *std::move(pipeline);
  bus::LogKeeper::Options keeping;
  keeping.interval = bus.retention_check_interval;
  keeping.io_bytes_per_second = bus.maintenance_bytes_per_second;
  keeping.compaction_memory_bytes = bus.compaction_memory_bytes;
  keeping.scrub_interval = bus.scrub_interval;
  keeping.scrub_bytes_per_second = bus.scrub_bytes_per_second;
  keeper_ = std::make_unique<bus::LogKeeper>(*pipeline_, *store_, clock_, keeping);
  keeper_->start(health_);
  api::TopicsApi::Options topics;
  topics.default_partitions = bus.default_partitions;
  topics.defaults = topic_defaults();
  topics_ = std::make_unique<api::TopicsApi>(*pipeline_, clock_, topics);
  records_ = std::make_unique<api::RecordsApi>(*pipeline_, *topics_, clock_);
  api::BackupsApi::Options backups;
  backups.directory = config_.storage.backup_directory;
  backups.node_name = config_.node.name;
  backups.version = version();
  backups.config = config::print({config_, {}});
  backups.max_backups = config_.storage.max_backups;
  backups.bytes_per_second = config_.bus.maintenance_bytes_per_second;
  backups.copy_data = [this](const std::filesystem::path& to) { return store_->checkpoint(to); };
  backups.staging = config_.node.data_directory / "backup.staging";
  backups_ = std::make_unique<api::BackupsApi>(clock_, std::move(backups));
  return {};
}

Status WholeNode::start_groups() {
  const config::BusConfig& bus = config_.bus;
  timer_ = std::make_unique<TimerThread>(clock_, health_);
  const TimerThread::Task task = timer_->add([this] { return coordinator_->run_due(); }, 0);
  group::Coordinator::Options options;
  options.limits.max_members = bus.group_max_members;
  options.limits.max_bytes = bus.group_max_bytes;
  options.limits.initial_rebalance_delay_ms = bus.group_initial_rebalance_delay.count();
  options.limits.min_session_timeout_ms = bus.group_min_session_timeout.count();
  options.limits.max_session_timeout_ms = bus.group_max_session_timeout.count();
  options.max_groups = bus.max_groups;
  options.offsets_retention_ms = bus.offsets_retention.count();
  options.wake_at = [this, task](int64_t due_ms) { timer_->run_by(task, due_ms); };
  auto coordinator = group::Coordinator::start(*pipeline_, clock_, std::move(options));
  if (!coordinator) return tl::unexpected(std::move(coordinator.error()));
  coordinator_ = *std::move(coordinator);
  consumers_ = std::make_unique<group::Consumers>(*coordinator_, *pipeline_);
  groups_ = std::make_unique<api::GroupsApi>(*pipeline_, *topics_, *coordinator_, *consumers_);
  timer_->start();
  return {};
}

Status WholeNode::start_workers() {
  const config::WorkerConfig& config = config_.worker;
  worker::Options options;
  options.threads = config.threads;
  options.step_deadline = config.step_deadline;
  options.max_stuck = config.max_stuck_workers;
  options.batch_records = config.batch_records;
  options.batch_bytes = config.batch_bytes;
  options.timers_per_step = config.timers_per_step;
  options.max_commit_bytes = config_.bus.commit_max_bytes;
  options.max_attempts = config.max_attempts;
  options.backoff_min = config.backoff_min;
  options.backoff_max = config.backoff_max;
  options.max_parked = config.max_parked_records;
  options.max_parked_bytes = config.max_parked_bytes;
  auto pool = worker::WorkerPool::start(*pipeline_, clock_, health_, options_.processors, options);
  if (!pool) return tl::unexpected(std::move(pool.error()));
  pool_ = *std::move(pool);
  workers_ = std::make_unique<api::WorkersApi>(*pool_);
  return {};
}

/// A worker that hangs may come back after this, and then uses the log once more, to be refused.
void WholeNode::stop_workers() {
  const size_t stuck = pool_->stop(config_.worker.step_deadline);
  if (stuck > 0) spdlog::error("{} workers hang and are left behind", stuck);
  workers_.reset();
  pool_.reset();
  hanging_ = stuck > 0;
}

http::Options http_options(const config::HttpConfig& config) {
  http::Options options;
  options.listen.clear();
  for (const auto& endpoint : config.listen)
    options.listen.push_back(endpoint.is_ipv6() ? fmt::format("[{}]:{}", endpoint.address, endpoint.port)
                                                : fmt::format("{}:{}", endpoint.address, endpoint.port));
  options.unix_socket = config.unix_socket_path().value_or("");
  options.allowed_hosts = config.allowed_hosts;
  options.allowed_origins = config.allowed_origins;
  options.io_threads = config.io_threads;
  options.max_header_bytes = config.max_header_bytes;
  options.max_body_bytes = config.max_body_bytes;
  options.max_body_bytes_in_flight = config.max_body_memory_bytes;
  options.max_connections = config.max_connections;
  options.max_connections_per_address = config.max_connections_per_address;
  options.request_deadline = config.request_timeout;
  options.idle_timeout = config.idle_timeout;
  options.write_timeout = config.write_timeout;
  return options;
}

Status WholeNode::start_http() {
  auto router = std::make_shared<http::Router>();
  http::add_topic_routes(*router, *topics_);
  http::add_record_routes(*router, *records_, *pipeline_, {config_.bus.fetch_max_bytes, config_.bus.long_poll_max});
  http::add_backup_routes(*router, *backups_, config_.bus.long_poll_max);
  http::add_group_routes(*router, *groups_, *pipeline_, {config_.bus.fetch_max_bytes, config_.bus.long_poll_max});
  http::add_worker_routes(*router, *workers_);
  http::add_stream_route(*router, *records_, *topics_, *pipeline_);
  http::add_node_routes(*router,
                        {[this] { return info(); }, [this] { return ready(); },
                         [this] {
                           return metrics_text(*pipeline_, *keeper_, *store_, *coordinator_, *groups_, *pool_,
                                               server_->stats());
                         },
                         config_.node.loop_stuck_after},
                        health_);
  router->add_openapi("Millrace", std::string(version()), "A durable partitioned log, and what is built on it.");
  auto server = http::Server::listen(http_options(config_.http), std::move(router), health_);
  if (!server) return tl::unexpected(std::move(server.error()));
  server_ = *std::move(server);
  server_->start();
  for (const std::string& url : server_->urls()) spdlog::info("listening on {}", url);
  return {};
}

std::string WholeNode::info() const {
  const store::OpenReport& report = store_->open_report();
  const store::Stats stats = store_->stats();
  std::string damages;
  for (const std::string& damage : keeper_->damages())
    damages += (damages.empty() ? "" : ",") + http::json_quote(damage);
  return fmt::format(
      R"({{"name":{},"version":"{}","revision":"{}","build":"{}","rocksdb":"{}","pid":{},"uptimeMs":"{}",)"
      R"("dataDirectory":{},"commitDurability":"{}","ready":{},)"
      R"("start":{{"created":{},"cleanStop":{},"recoveredSequence":"{}","replayedBytes":"{}"}},)"
      R"("store":{{"walBytes":"{}","diskBytes":"{}","memoryBytes":"{}","freeBytes":"{}","reserveBytes":"{}"}},)"
      R"("commits":{{"accepted":"{}","refused":"{}","waiting":"{}"}},"damages":[{}]}})",
      http::json_quote(config_.node.name), version(), git_revision(), build_type(), store::Store::rocksdb_version(),
      ::getpid(), clock_.wall_ms() - started_ms_, http::json_quote(config_.node.data_directory.string()),
      config_.storage.commit_durability == config::CommitDurability::kSync ? "sync" : "async", ready().has_value(),
      report.created, report.clean_stop, report.recovered_sequence, report.wal_bytes, stats.wal_bytes, stats.disk_bytes,
      stats.memory_bytes, stats.free_bytes, stats.reserve_bytes, pipeline_->stats().accepted.load(),
      pipeline_->stats().refused.load(), pipeline_->stats().waiting.load(), damages);
}

Status WholeNode::ready() const {
  if (stopping_) return fail(ErrorKind::kUnavailable, "STOPPING", "the node is stopping");
  if (pipeline_->failed() || store_->failed())
    return fail(ErrorKind::kUnavailable, "STORE_FAILED", "a write failed; the node is to be restarted");
  return pool_->ready();
}

/// From the outside in: nobody new, answers for those inside, then what they rest on.
void WholeNode::stop() {
  stopping_ = true;
  server_->stop_and_wait(config_.http.drain_timeout);
  backups_->stop();
  keeper_->stop();
  stop_workers();
  // Nobody asks any more, so nothing new falls due; what is under way is answered by the pipeline's end.
  timer_->stop();
  if (auto status = pipeline_->close(); !status)
    spdlog::error("closing the commit pipeline: {}", to_string(status.error()));
  server_.reset();
  backups_.reset();
  groups_.reset();
  records_.reset();
  topics_.reset();
  keeper_.reset();
  if (hanging_) (void)pipeline_.release();  // Closed, and answers so.
  pipeline_.reset();
  consumers_.reset();
  coordinator_.reset();
  timer_.reset();
  if (auto status = store_->close(); !status) spdlog::error("closing the store: {}", to_string(status.error()));
  store_.reset();
}

}  // namespace

Result<std::unique_ptr<Node>> Node::start(const config::Config& config, Health& health, OnFatal on_fatal,
                                          Options options) {
  auto node = std::make_unique<WholeNode>(config, health, std::move(on_fatal), std::move(options));
  MILLRACE_TRY(node->start());
  return node;
}

}  // namespace millrace::daemon
