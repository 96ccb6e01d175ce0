#include "daemon/metrics.h"

#include <map>

#include "api/metrics.h"
#include "base/version.h"
#include "bus/store_view.h"

namespace millrace::daemon {
namespace {

template <typename Number>
double number(const std::atomic<Number>& value) {
  return static_cast<double>(value.load(std::memory_order_relaxed));
}

void bus_metrics(const bus::CommitPipeline& pipeline, api::MetricsPage& page) {
  const bus::CommitStats& stats = pipeline.stats();
  page.counter("millrace_commits_accepted_total", "Commits that are durable.", number(stats.accepted));
  page.counter("millrace_commits_refused_total", "Commits answered with an error.", number(stats.refused));
  page.counter("millrace_commit_groups_total", "Writes of the commit pipeline.", number(stats.groups));
  page.counter("millrace_commit_bytes_total", "Bytes written by the commit pipeline.", number(stats.bytes));
  page.counter("millrace_commit_groups_led_total", "Groups carried by a caller.", number(stats.led));
  page.gauge("millrace_commits_waiting", "Commits taken and not answered.", number(stats.waiting));
  page.gauge("millrace_commits_waiting_bytes", "Their bytes.", number(stats.waiting_bytes));
  page.summary("millrace_commit_write_seconds", "Write and sync of a group.", stats.write_ns);
  page.gauge("millrace_watches", "Partitions that long polls and streams wait for.",
             static_cast<double>(pipeline.watches()));
}

void keeper_metrics(const bus::KeeperStats& stats, api::MetricsPage& page) {
  page.gauge("millrace_log_segments", "Segments of the log.", number(stats.segments));
  page.gauge("millrace_log_dead_bytes", "In closed segments, of records that nobody can reach.",
             number(stats.dead_bytes));
  page.counter("millrace_log_keeper_passes_total", "Times the log was looked through.", number(stats.passes));
  page.counter("millrace_log_trims_total", "Times a partition lost its oldest records to retention.",
               number(stats.trims));
  page.counter("millrace_log_segments_removed_total", "Segments freed.", number(stats.removed_segments));
  page.counter("millrace_log_moved_bytes_total", "Written again so that a segment could be freed.",
               number(stats.moved_bytes));
  page.counter("millrace_compaction_read_bytes_total", "Read by compaction.", number(stats.cleaned_bytes));
  page.counter("millrace_compaction_saved_bytes_total", "Of records that compaction left out.",
               number(stats.compacted_bytes));
  page.counter("millrace_scrub_bytes_total", "Read to compare checksums.", number(stats.scrubbed_bytes));
  page.counter("millrace_scrub_rounds_total", "Times that everything has been read.", number(stats.scrub_rounds));
  page.counter("millrace_damages_total", "Places found damaged.", number(stats.damages));
}

/// More would make a page that nobody reads: the others are in GET /v1/groups/{group} and
/// /v1/topics/{topic}/partitions.
constexpr size_t kMaxLagSeries = 1'000, kMaxPartitionSeries = 1'000;

void partition_metrics(const bus::CommitPipeline& pipeline, api::MetricsPage& page) {
  auto view = pipeline.store_view();
  if (!view) return;
  std::map<std::string_view, const bus::Topic*> topics;
  for (const auto& [id, topic] : view->topics()) topics[topic->name] = topic.get();
  api::MetricsPage::ByLabels starts, watermarks, bytes;
  size_t partitions = 0;
  for (const auto& [name, topic] : topics) {
    for (uint32_t number = 0; number < topic->partitions(); ++number) {
      ++partitions;
      if (watermarks.size() >= kMaxPartitionSeries) continue;
      const auto state = view->partition({topic->id, number});
      if (!state) continue;
      const std::vector<std::string> labels = {std::string(name), std::to_string(number)};
      starts.emplace_back(labels, static_cast<double>(state->log_start));
      watermarks.emplace_back(labels, static_cast<double>(state->high_watermark));
      bytes.emplace_back(labels, static_cast<double>(state->bytes));
    }
  }
  const std::vector<std::string> labels = {"topic", "partition"};
  page.gauge("millrace_topics", "Topics.", static_cast<double>(topics.size()));
  page.gauge("millrace_partitions", "Partitions of all topics.", static_cast<double>(partitions));
  page.gauges("millrace_partition_log_start", "First offset; the first 1000 partitions by topic.", labels, starts);
  page.gauges("millrace_partition_high_watermark", "Last durable offset + 1; the first 1000 partitions by topic.",
              labels, watermarks);
  page.gauges("millrace_partition_bytes", "Of the record batches kept; the first 1000 partitions by topic.", labels,
              bytes);
}

void group_metrics(const group::Coordinator& coordinator, const api::GroupsApi& groups, api::MetricsPage& page) {
  const group::Coordinator::Stats& stats = coordinator.stats();
  page.gauge("millrace_groups", "Consumer groups.", static_cast<double>(coordinator.groups()));
  page.gauge("millrace_group_members", "Members of all consumer groups.", static_cast<double>(coordinator.members()));
  page.counter("millrace_group_rebalances_total", "Rebalances that came to their end.", number(stats.rebalances));
  page.counter("millrace_group_offset_commits_total", "Commits of offsets that are durable.",
               number(stats.offset_commits));
  page.counter("millrace_group_fenced_commits_total", "Commits of offsets that a newer generation outran.",
               number(stats.fenced_commits));
  page.counter("millrace_groups_expired_total", "Groups forgotten after bus.offsetsRetention.",
               number(stats.expired_groups));
  api::MetricsPage::ByLabels lags;
  for (auto& lag : groups.lags(kMaxLagSeries))
    lags.push_back(
        {{std::move(lag.group), std::move(lag.topic), std::to_string(lag.partition)}, static_cast<double>(lag.lag)});
  page.gauges("millrace_group_lag", "Records behind the committed offset; the first 1000 by group.",
              {"group", "topic", "partition"}, lags);
}

void store_metrics(const store::Store& store, api::MetricsPage& page) {
  store::Stats stats = store.stats();
  page.gauge("millrace_store_wal_bytes", "Write-ahead log since the last flush.", static_cast<double>(stats.wal_bytes));
  page.gauge("millrace_store_disk_bytes", "Table files.", static_cast<double>(stats.disk_bytes));
  page.gauge("millrace_store_memory_bytes", "Memory of the store.", static_cast<double>(stats.memory_bytes));
  page.gauge("millrace_store_free_bytes", "Free bytes of the disk as last looked at.",
             static_cast<double>(stats.free_bytes));
  page.gauge("millrace_store_failed", "1 after an indeterminate write.", store.failed() ? 1 : 0);
}

void http_metrics(const http::Stats& stats, api::MetricsPage& page) {
  page.gauge("millrace_http_connections", "Open connections.", static_cast<double>(stats.connections()));
  page.counter("millrace_http_requests_total", "Requests given to a handler.", number(stats.requests));
  api::MetricsPage::ByLabel responses, rejected;
  for (size_t i = 1; i < stats.responses.size(); ++i)
    responses.emplace_back(std::to_string(i) + "xx", number(stats.responses[i]));
  for (size_t i = 0; i < stats.rejected.size(); ++i)
    rejected.emplace_back(http::to_string(static_cast<http::Rejected>(i)), number(stats.rejected[i]));
  page.counters("millrace_http_responses_total", "Responses by class of status.", "status", responses);
  page.counters("millrace_http_rejected_total", "Turned away before a handler, by reason.", "reason", rejected);
  page.gauge("millrace_http_in_flight", "Requests not answered yet.", number(stats.in_flight));
  page.gauge("millrace_http_streams", "Open streams.", number(stats.streams));
  page.counter("millrace_http_bytes_in_total", "Bytes received.", number(stats.bytes_in));
  page.counter("millrace_http_bytes_out_total", "Bytes sent.", number(stats.bytes_out));
}

void worker_metrics(const worker::WorkerPool& workers, api::MetricsPage& page) {
  const worker::WorkerStats& stats = workers.stats();
  page.counter("millrace_worker_steps_total", "Steps that are durable.", number(stats.steps));
  page.counter("millrace_worker_records_total", "Records they took.", number(stats.records));
  page.counter("millrace_worker_failures_total", "Steps that failed.", number(stats.failures));
  page.counter("millrace_worker_retries_total", "Attempts at what had failed before.", number(stats.retries));
  page.counter("millrace_worker_dead_letters_total", "Records that were given up.", number(stats.dead_letters));
  page.counter("millrace_worker_fenced_total", "Late commits that a newer epoch refused.", number(stats.fenced));
  page.counter("millrace_worker_timers_fired_total", "Timers that fired.", number(stats.timers_fired));
  page.counter("millrace_worker_leases_total", "Leases taken.", number(stats.acquired));
  page.counter("millrace_worker_hung_total", "Workers that hung and were replaced.", number(stats.hung));
  page.counter("millrace_worker_lost_records_total", "Records that retention removed before a worker read them.",
               number(stats.records_lost));
  page.gauge("millrace_worker_lag", "Records that the processors have still to take.",
             static_cast<double>(workers.lag()));
  page.summary("millrace_worker_step_seconds", "The processor's part of a step.", stats.step_ns);
  page.summary("millrace_worker_timer_lateness_seconds", "How late timers fire.", stats.timer_lateness_ns);
}

}  // namespace

std::string metrics_text(const bus::CommitPipeline& pipeline, const bus::LogKeeper& keeper, const store::Store& store,
                         const group::Coordinator& coordinator, const api::GroupsApi& groups,
                         const worker::WorkerPool& workers, const http::Stats& http) {
  api::MetricsPage page;
  page.info("millrace_build_info", "Version and revision.",
            {{"version", std::string(version())}, {"revision", std::string(git_revision())}});
  bus_metrics(pipeline, page);
  keeper_metrics(keeper.stats(), page);
  partition_metrics(pipeline, page);
  group_metrics(coordinator, groups, page);
  worker_metrics(workers, page);
  store_metrics(store, page);
  http_metrics(http, page);
  return page.text();
}

}  // namespace millrace::daemon
