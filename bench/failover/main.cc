// bench_failover [--runs N] [--events N] [--deadline MS] [--directory DIR]
//
// 16 partitions over 4 workers on a store in DIR, each commit synced, under a steady load of appends. One worker is
// stopped or made to hang; measured is the time from there to the next durable step of one of its partitions.

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/support/options.h"
#include "bench/support/report.h"
#include "bus/commit_pipeline.h"
#include "bus/record_batch.h"
#include "tests/support/worker/counter.h"
#include "worker/lease.h"
#include "worker/topics.h"
#include "worker/worker_pool.h"

namespace millrace::bench {
namespace {

constexpr uint32_t kPartitions = 16, kWorkers = 4;
/// What a takeover is allowed, beside the time after which a worker counts as hung.
constexpr double kGoalMs = 100;

struct Settings {
  int runs = 5;
  int events = 20;
  int deadline_ms = 200;
  std::string directory = ".";
};

/// Makes the worker that is named hang where its next step begins.
class Hang final : public worker::FaultPoints {
 public:
  void at(Point point, worker::WorkerId worker, std::string_view, uint32_t) override {
    std::unique_lock lock(mutex_);
    if (!armed_ || point != Point::kBeforeCommit || worker != worker_) return;
    armed_ = false;
    struck_at_ = steady_seconds();
    changed_.notify_all();
    const uint64_t generation = generation_;
    changed_.wait(lock, [&] { return generation_ != generation; });
  }
  /// When it struck.
  double strike(worker::WorkerId worker) {
    std::unique_lock lock(mutex_);
    worker_ = worker;
    armed_ = true;
    changed_.wait(lock, [&] { return !armed_; });
    return struck_at_;
  }
  void release() {
    std::lock_guard lock(mutex_);
    ++generation_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false;
  worker::WorkerId worker_ = 0;
  double struck_at_ = 0;
  uint64_t generation_ = 0;
};

/// The whole machinery, and a thread that appends to every partition.
class Rig {
 public:
  explicit Rig(const Settings& settings) : directory_(std::filesystem::path(settings.directory) / "bench-store") {
    std::filesystem::remove_all(directory_);
    store::Options options;
    options.directory = directory_;
    options.prepared_wal_bytes = options.max_wal_bytes / 2 + (1 << 20);
    store_ = std::move(store::Store::open(options).value());
    pipeline_ = std::move(bus::CommitPipeline::start(*store_, clock_, health_, {}).value());
    if (!worker::ensure_topic(*pipeline_, clock_, "in", kPartitions)) std::abort();
    if (!worker::ensure_topic(*pipeline_, clock_, "out", kPartitions)) std::abort();
    in_ = worker::find_topic(*pipeline_->view(), "in")->id;
    out_ = worker::find_topic(*pipeline_->view(), "out")->id;
    worker::Options workers;
    workers.threads = kWorkers;
    workers.step_deadline = std::chrono::milliseconds(settings.deadline_ms);
    workers.max_stuck = 1'000'000;
    pool_ = worker::WorkerPool::start(*pipeline_, clock_, health_, {std::make_shared<tests::Counter>("in", "out")},
                                      workers, &hang_)
                .value();
    load_ = std::thread([this] { load(); });
  }
  ~Rig() {
    ends_ = true;
    load_.join();
    hang_.release();
    pool_.reset();
    pipeline_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  /// A worker that runs, and the partitions it has.
  worker::WorkerStatus victim() {
    for (;;) {
      auto status = pool_->describe();
      std::erase_if(status.workers, [](const auto& w) {
        return w.state != worker::WorkerStatus::State::kRunning || w.partitions.empty();
      });
      if (!status.workers.empty()) return status.workers[next_++ % status.workers.size()];
      std::this_thread::yield();
    }
  }

  double stop_ms() {
    const worker::WorkerStatus one = victim();
    const double began = steady_seconds();
    if (!pool_->stop_worker(one.id)) return stop_ms();
    return (await_step(one) - began) * 1e3;
  }
  double hang_ms() {
    const worker::WorkerStatus one = victim();
    const double began = hang_.strike(one.id);
    const double ended = await_step(one);
    hang_.release();
    return (ended - began) * 1e3;
  }

 private:
  /// When the next step of one of its partitions is durable after it has another owner: none but that one's counts.
  double await_step(const worker::WorkerStatus& one) {
    std::vector<bus::Home> homes;
    for (const auto& partition : one.partitions) homes.push_back(tests::Counter("in", "out").home(partition.partition));
    std::map<size_t, uint64_t> seen;  // Output's end when the new owner had the lease.
    for (;;) {
      auto view = pipeline_->view();
      for (size_t i = 0; i < homes.size(); ++i) {
        const bus::TopicPartition out{out_, one.partitions[i].partition};
        if (worker::read_lease(*view, homes[i])->owner == fmt::format("worker-{}", one.id)) continue;
        const uint64_t end = view->partition(out)->high_watermark;
        if (end > seen.try_emplace(i, end).first->second) return steady_seconds();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  void load() {
    const std::string key = "key", value(64, 'v');
    while (!ends_) {
      bus::Commit commit(bus::topic_home("in"));
      for (uint32_t partition = 0; partition < kPartitions; ++partition) {
        bus::RecordView record;
        record.key = key;
        record.value = value;
        bus::BatchBuilder batch;
        batch.add(record);
        commit.appends.push_back({{in_, partition}, batch.finish()});
      }
      pipeline_->submit_and_wait(std::move(commit)).value();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  const std::filesystem::path directory_;
  SystemClock& clock_ = SystemClock::instance();
  Health health_{clock_};
  Hang hang_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<bus::CommitPipeline> pipeline_;
  std::unique_ptr<worker::WorkerPool> pool_;
  Uuid in_, out_;
  size_t next_ = 0;
  std::atomic<bool> ends_{false};
  std::thread load_;
};

int run(const Settings& settings) {
  spdlog::set_level(spdlog::level::off);
  std::filesystem::create_directories(settings.directory);
  Report report("failover",
                fmt::format("{} partitions over {} workers, a record to each every 2 ms, each run the median "
                            "of {} events, hung after {} ms, in {}",
                            kPartitions, kWorkers, settings.events, settings.deadline_ms,
                            std::filesystem::absolute(settings.directory).string()));
  Rig rig(settings);
  Case stop{.name = "worker-stop",
            .unit = "ms",
            .better = Better::kLower,
            .reference_name = "100 ms",
            .reference = {kGoalMs},
            .durability = "sync"};
  Case hang{.name = "worker-hang",
            .unit = "ms",
            .better = Better::kLower,
            .reference_name = "deadline + 100 ms",
            .reference = {settings.deadline_ms + kGoalMs},
            .durability = "sync"};
  auto measure_events = [&](auto&& event) {
    std::vector<double> took;
    for (int i = 0; i < settings.events; ++i) took.push_back(event());
    return median(std::move(took));
  };
  rig.stop_ms();
  for (int run = 0; run < settings.runs; ++run) {
    stop.ours.push_back(measure_events([&] { return rig.stop_ms(); }));
    hang.ours.push_back(measure_events([&] { return rig.hang_ms(); }));
    fmt::print("run {}: stop {:.1f} ms, hang {:.1f} ms\n", run + 1, stop.ours.back(), hang.ours.back());
    std::fflush(stdout);
  }
  report.add(stop);
  report.add(hang);
  report.print();
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Settings settings;
  millrace::bench::Options options("bench_failover");
  options.number("runs", settings.runs, "How often each case is measured; figures are medians");
  options.number("events", settings.events, "Workers stopped and workers hung in a run");
  options.number("deadline", settings.deadline_ms, "After how many milliseconds a step counts as hung");
  options.text("directory", settings.directory, "Where the store is");
  return options.run(argc, argv, [&settings] { return millrace::bench::run(settings); });
}
