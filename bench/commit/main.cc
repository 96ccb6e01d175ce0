// bench_commit [--runs N] [--seconds S] [--only CASE-PREFIX] [--directory DIR]
//
// The commit pipeline against what the disk can do, in interleaved windows (disk, ours, disk) in the same directory.
// The disk's window appends the same number of bytes to a growing file: write and fdatasync, or write alone.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support/bus.h"
#include "bench/support/disk.h"
#include "bench/support/options.h"
#include "bench/support/report.h"
#include "http/event_loop.h"

namespace millrace::bench {
namespace {

struct Settings {
  int runs = 5;
  double seconds = 2;
  std::string only;
  std::string directory = ".";
  bool wants(const std::string& name) const { return name.rfind(only, 0) == 0; }
};

/// What the log writes for one commit of one record of 256 bytes: the batch with its key and its frame, about.
constexpr size_t kRecordBytes = 256, kLogBytes = 400;

struct Ours {
  double per_second = 0;
  double cpu_us = 0;
  double p99_seconds = 0;
};
Ours ours(const Window& window, std::vector<double> latencies) {
  std::sort(latencies.begin(), latencies.end());
  const auto count = static_cast<double>(latencies.size());
  return {count / window.seconds, window.cpu_seconds * 1e6 / count, latencies[latencies.size() * 99 / 100]};
}

/// `writers` threads that wait for each commit.
Ours commit_for(Bus& bus, double seconds, int writers, size_t record_bytes) {
  std::mutex mutex;
  std::vector<double> latencies;
  const Bytes batch = batch_of(1, record_bytes);
  Window window = measure([&] {
    const double end = steady_seconds() + seconds;
    std::vector<std::thread> threads;
    for (int i = 0; i < writers; ++i)
      threads.emplace_back([&, i] {
        std::vector<double> mine;
        for (double began = steady_seconds(); began < end;) {
          bus.commit(static_cast<uint32_t>(i % Bus::kPartitions), batch);
          double now = steady_seconds();
          mine.push_back(now - began);
          began = now;
        }
        std::lock_guard lock(mutex);
        latencies.insert(latencies.end(), mine.begin(), mine.end());
      });
    for (auto& thread : threads) thread.join();
  });
  return ours(window, std::move(latencies));
}

/// As the daemon's connections write: `writers` of them on two I/O threads, each with one commit on its way.
class Connections {
 public:
  Connections(Bus& bus, int writers, size_t record_bytes)
      : bus_(bus), batch_(batch_of(1, record_bytes)), loops_{bus.start_loop("io-0"), bus.start_loop("io-1")} {
    for (int i = 0; i < writers; ++i) writers_.push_back({*loops_[static_cast<size_t>(i) % 2], i});
  }
  ~Connections() {
    for (auto& loop : loops_) loop->join();
  }

  Ours run(double seconds) {
    Window window = measure([&] {
      end_ = steady_seconds() + seconds;
      running_ = writers_.size();
      for (Writer& writer : writers_) writer.loop.post([this, &writer] { begin(writer); });
      std::unique_lock lock(mutex_);
      finished_.wait(lock, [&] { return running_ == 0; });
    });
    std::vector<double> latencies;
    for (Writer& writer : writers_) {
      latencies.insert(latencies.end(), writer.latencies.begin(), writer.latencies.end());
      writer.latencies.clear();
    }
    return ours(window, std::move(latencies));
  }

 private:
  struct Writer {
    http::EventLoop& loop;
    int number;
    std::vector<double> latencies = {};
  };

  void begin(Writer& writer) {
    bus_.commit(static_cast<uint32_t>(writer.number % Bus::kPartitions), batch_,
                [this, &writer, began = steady_seconds()] {
                  writer.loop.post([this, &writer, began] { answered(writer, began); });
                });
  }
  void answered(Writer& writer, double began) {
    double now = steady_seconds();
    writer.latencies.push_back(now - began);
    if (now < end_) return begin(writer);
    std::lock_guard lock(mutex_);
    if (--running_ == 0) finished_.notify_one();
  }

  Bus& bus_;
  const Bytes batch_;
  std::array<std::shared_ptr<http::EventLoop>, 2> loops_;
  std::vector<Writer> writers_;
  double end_ = 0;
  std::mutex mutex_;
  std::condition_variable finished_;
  size_t running_ = 0;
};

/// disk, ours, disk: the disk's figure is the mean of its two windows. `scale` makes commits of appends.
struct Shape {
  std::string name, unit, reference;
  int writers;
  bool threads;  ///< else connections on I/O threads
  size_t record_bytes, disk_bytes;
  store::Durability durability;
  bool disk_syncs;
  /// What one commit or append counts for in `unit`.
  double weight;
};

void run_shape(const Shape& shape, const Settings& settings, Report& report) {
  if (!settings.wants(shape.name)) return;
  const std::string durability = shape.durability == store::Durability::kSync ? "sync" : "async";
  Case result{.name = shape.name, .unit = shape.unit, .reference_name = shape.reference, .durability = durability};
  Case latency{.name = shape.name + "-p99",
               .unit = "s",
               .better = Better::kLower,
               .reference_name = "three sync times",
               .durability = durability};
  // 64 writers are held against 24 records a sync; their p99 against three sync times.
  const double goal = shape.writers == 64 ? 24 : 1;
  Bus bus(settings.directory, shape.durability);
  std::optional<Connections> connections;
  if (!shape.threads) connections.emplace(bus, shape.writers, shape.record_bytes);
  auto run_ours = [&](double seconds) {
    return connections ? connections->run(seconds) : commit_for(bus, seconds, shape.writers, shape.record_bytes);
  };
  run_ours(settings.seconds / 4);
  bus.groups();
  for (int run = 0; run < settings.runs; ++run) {
    Disk before = append_for(settings.directory, settings.seconds / 2, shape.disk_bytes, shape.disk_syncs);
    Ours ours = run_ours(settings.seconds);
    Disk after = append_for(settings.directory, settings.seconds / 2, shape.disk_bytes, shape.disk_syncs);
    const double disk = (before.per_second + after.per_second) / 2;
    fmt::print("{} {}: ours {:.1f}, disk {:.1f} and {:.1f} a second, p99 {:.2f} ms, {:.0f} us CPU each; {}\n",
               shape.name, run + 1, ours.per_second, before.per_second, after.per_second, ours.p99_seconds * 1e3,
               ours.cpu_us, bus.groups());
    std::fflush(stdout);
    result.ours.push_back(ours.per_second * shape.weight);
    result.reference.push_back(disk * shape.weight * goal);
    result.our_cpu_us.push_back(ours.cpu_us);
    result.reference_cpu_us.push_back((before.cpu_us + after.cpu_us) / 2);
    latency.ours.push_back(ours.p99_seconds);
    latency.reference.push_back(3 / disk);
  }
  report.add(result);
  if (shape.writers == 64) report.add(latency);
}

int run(const Settings& settings) {
  std::filesystem::create_directories(settings.directory);
  Report report("commit", fmt::format("windows of {} s, disk-ours-disk, in {}; RocksDB of Debian 12 (assertions on)",
                                      settings.seconds, std::filesystem::absolute(settings.directory).string()));
  constexpr size_t kMiB = 1 << 20;
  using store::Durability;
  run_shape({"one-writer-per-fdatasync", "commits/s", "fdatasync/s, same-size appends", 1, true, kRecordBytes,
             kLogBytes, Durability::kSync, true, 1},
            settings, report);
  run_shape({"sixty-four-writers-per-fdatasync", "records/s", "24 x fdatasync/s", 64, false, kRecordBytes, kLogBytes,
             Durability::kSync, true, 1},
            settings, report);
  run_shape({"sixty-four-threads-per-fdatasync", "records/s", "24 x fdatasync/s", 64, true, kRecordBytes, kLogBytes,
             Durability::kSync, true, 1},
            settings, report);
  run_shape({"append-async-1MiB", "MB/s", "write", 1, true, kMiB, kMiB, Durability::kAsync, false, kMiB / 1e6},
            settings, report);
  run_shape(
      {"append-sync-1MiB", "MB/s", "write and fdatasync", 1, true, kMiB, kMiB, Durability::kSync, true, kMiB / 1e6},
      settings, report);
  report.print();
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Settings settings;
  millrace::bench::Options options("bench_commit");
  options.number("runs", settings.runs, "How often each case is measured; figures are medians");
  options.number("seconds", settings.seconds, "Length of a window", 0.1);
  options.text("only", settings.only, "Only the cases whose names begin so");
  options.text("directory", settings.directory, "Where the files are written: it is the disk that is measured");
  return options.run(argc, argv, [&settings] { return millrace::bench::run(settings); });
}
