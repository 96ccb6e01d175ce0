// bench_bus [--runs N] [--seconds S] [--only CASE-PREFIX] [--directory DIR]
//
// Records through the bus in process: a producer with batches of 16 records of 1 KB on their way, and a consumer that
// reads them all, at the same time; against a file that the same bytes are written to and then read from, in
// interleaved windows (disk, ours, disk) in the same directory. And how long after its submission a single record
// reaches a reader that waits at the tail, against one fdatasync.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/bus.h"
#include "bench/support/disk.h"
#include "bench/support/options.h"
#include "bench/support/report.h"
#include "bus/record_batch.h"

namespace millrace::bench {
namespace {

struct Settings {
  int runs = 5;
  double seconds = 2;
  std::string only;
  std::string directory = ".";
  bool wants(const std::string& name) const { return name.rfind(only, 0) == 0; }
};

constexpr int kBatchRecords = 16;
constexpr size_t kValueBytes = 1'000;
/// As much as is on its way at once: a group of the pipeline is no larger.
constexpr int kInFlight = 128;
/// What the file is written and read in.
constexpr size_t kChunkBytes = 1 << 20;

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "bench: {}\n", what);
  std::abort();
}

/// Waits for the log to have something at `offset`.
void wait_for(Bus& bus, const bus::TopicPartition& partition, uint64_t offset) {
  struct Woken {
    std::mutex mutex;
    std::condition_variable changed;
    bool woken = false;
  };
  auto woken = std::make_shared<Woken>();
  auto watch = bus.pipeline().watch({{partition, offset}}, [woken] {
    std::lock_guard lock(woken->mutex);
    woken->woken = true;
    woken->changed.notify_one();
  });
  std::unique_lock lock(woken->mutex);
  woken->changed.wait(lock, [&] { return woken->woken; });
}

/// Counts the commits on their way.
class InFlight {
 public:
  void begin() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ < kInFlight; });
    ++count_;
  }
  void end() {
    std::lock_guard lock(mutex_);
    --count_;
    changed_.notify_one();
  }
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

struct Throughput {
  double per_second = 0;  ///< records
  double cpu_us = 0;      ///< for each
};

/// Produces for so long and consumes all of it meanwhile.
Throughput produce_and_consume(Bus& bus, double seconds, uint32_t partitions, std::vector<uint64_t>& positions) {
  std::atomic<uint64_t> produced{0};
  std::atomic<bool> finished{false};
  uint64_t consumed = 0;
  const Bytes batch = batch_of(kBatchRecords, kValueBytes);
  Window window = measure([&] {
    std::thread consumer([&] {
      for (uint32_t p = 0;; p = (p + 1) % partitions) {
        if (finished.load() && consumed == produced.load()) return;
        auto fetched = bus.pipeline().view()->fetch(bus.partition(p), positions[p], 1 << 20);
        if (!fetched) give_up(to_string(fetched.error()));
        for (const Bytes& one : *fetched) {
          auto info = bus::read_batch_info(one);
          consumed += static_cast<uint64_t>(info->record_count);
          positions[p] = static_cast<uint64_t>(info->next_offset());
        }
        if (fetched->empty() && !finished.load()) wait_for(bus, bus.partition(p), positions[p]);
      }
    });
    InFlight in_flight;
    const double end = steady_seconds() + seconds;
    for (uint32_t p = 0; steady_seconds() < end; p = (p + 1) % partitions) {
      in_flight.begin();
      bus.commit(p, batch, [&] { in_flight.end(); });
      produced += kBatchRecords;
    }
    in_flight.wait_for_none();
    finished = true;
    // One more for each partition, so that no consumer waits for ever.
    for (uint32_t p = 0; p < partitions; ++p) {
      produced += kBatchRecords;
      bus.commit(p, batch);
    }
    consumer.join();
  });
  const auto records = static_cast<double>(consumed);
  return {records / window.seconds, window.cpu_seconds * 1e6 / records};
}

/// The same bytes in a file: written (and synced) chunk by chunk, then read.
Throughput write_and_read(const std::filesystem::path& directory, double seconds, bool sync) {
  const auto path = directory / "bench-bus.raw";
  const size_t record_bytes = batch_of(kBatchRecords, kValueBytes).size() / kBatchRecords;
  Bytes chunk(kChunkBytes, 'v');
  uint64_t chunks = 0;
  Window window = measure([&] {
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) give_up("cannot create " + path.string());
    // Reading takes a part of the time, about as it is usual for a page cache.
    for (const double end = steady_seconds() + seconds * 0.8; steady_seconds() < end; ++chunks) {
      if (::write(fd, chunk.data(), chunk.size()) != static_cast<ssize_t>(chunk.size())) give_up("a short write");
      if (sync && ::fdatasync(fd) != 0) give_up("fdatasync failed");
    }
    ::lseek(fd, 0, SEEK_SET);
    while (::read(fd, chunk.data(), chunk.size()) > 0) continue;
    ::close(fd);
  });
  std::filesystem::remove(path);
  const double records = static_cast<double>(chunks * kChunkBytes) / static_cast<double>(record_bytes);
  return {records / window.seconds, window.cpu_seconds * 1e6 / records};
}

void run_throughput(uint32_t partitions, store::Durability durability, const Settings& settings, Report& report) {
  const bool sync = durability == store::Durability::kSync;
  const std::string name = fmt::format("produce-consume-{}p-{}", partitions, sync ? "sync" : "async");
  if (!settings.wants(name)) return;
  Case result{.name = name,
              .unit = "records/s",
              .reference_name = sync ? "write, fdatasync and read of 1 MiB" : "write and read of 1 MiB",
              .durability = sync ? "sync" : "async"};
  Bus bus(settings.directory, durability);
  std::vector<uint64_t> positions(partitions, 0);
  produce_and_consume(bus, settings.seconds / 4, partitions, positions);
  bus.groups();
  for (int run = 0; run < settings.runs; ++run) {
    Throughput before = write_and_read(settings.directory, settings.seconds / 2, sync);
    Throughput ours = produce_and_consume(bus, settings.seconds, partitions, positions);
    Throughput after = write_and_read(settings.directory, settings.seconds / 2, sync);
    fmt::print("{} {}: ours {:.0f}/s ({:.0f} MB/s), file {:.0f} and {:.0f}/s, {:.1f} us CPU a record; {}\n", name,
               run + 1, ours.per_second, ours.per_second * kValueBytes / 1e6, before.per_second, after.per_second,
               ours.cpu_us, bus.groups());
    std::fflush(stdout);
    result.ours.push_back(ours.per_second);
    result.reference.push_back((before.per_second + after.per_second) / 2);
    result.our_cpu_us.push_back(ours.cpu_us);
    result.reference_cpu_us.push_back((before.cpu_us + after.cpu_us) / 2);
  }
  report.add(result);
}

/// A record at a time, each after the one before was delivered: seconds from its submission to a waiting reader.
std::vector<double> deliver(Bus& bus, double seconds, uint64_t& position) {
  std::vector<double> latencies;
  const Bytes batch = batch_of(1, kValueBytes);
  std::atomic<double> submitted{0};
  std::atomic<bool> finished{false};
  std::mutex mutex;
  std::condition_variable delivered;
  uint64_t count = 0;
  std::thread reader([&] {
    // One is on its way at a time, so what comes after the mark is the last.
    for (bool last = false; !last;) {
      wait_for(bus, bus.partition(0), position);
      last = finished.load();
      auto fetched = bus.pipeline().view()->fetch(bus.partition(0), position, 1 << 20);
      if (!fetched) give_up(to_string(fetched.error()));
      const double now = steady_seconds();
      for (const Bytes& one : *fetched) position = static_cast<uint64_t>(bus::read_batch_info(one)->next_offset());
      std::lock_guard lock(mutex);
      latencies.push_back(now - submitted.load());
      ++count;
      delivered.notify_one();
    }
  });
  const double end = steady_seconds() + seconds;
  for (uint64_t sent = 0; !finished.load();) {
    finished = steady_seconds() >= end;
    submitted = steady_seconds();
    bus.commit(0, batch, [] {});
    ++sent;
    std::unique_lock lock(mutex);
    delivered.wait(lock, [&] { return count == sent; });
  }
  reader.join();
  std::sort(latencies.begin(), latencies.end());
  return latencies;
}

void run_latency(store::Durability durability, const Settings& settings, Report& report) {
  const bool sync = durability == store::Durability::kSync;
  const std::string name = fmt::format("tail-latency-{}", sync ? "sync" : "async");
  if (!settings.wants(name)) return;
  auto make_case = [&](const char* suffix) {
    return Case{.name = name + suffix,
                .unit = "ms",
                .better = Better::kLower,
                .reference_name = "one fdatasync, same-size append",
                .durability = sync ? "sync" : "async"};
  };
  Case p50 = make_case("-p50"), p99 = make_case("-p99");
  Bus bus(settings.directory, durability);
  uint64_t position = 0;
  deliver(bus, settings.seconds / 4, position);
  for (int run = 0; run < settings.runs; ++run) {
    Disk before = append_for(settings.directory, settings.seconds / 2, kValueBytes + 150, true);
    const std::vector<double> ours = deliver(bus, settings.seconds, position);
    Disk after = append_for(settings.directory, settings.seconds / 2, kValueBytes + 150, true);
    const double disk = 2e3 / (before.per_second + after.per_second);
    p50.ours.push_back(ours[ours.size() / 2] * 1e3);
    p99.ours.push_back(ours[ours.size() * 99 / 100] * 1e3);
    p50.reference.push_back(disk);
    p99.reference.push_back(disk);
    fmt::print("{} {}: {} records, p50 {:.3f} ms, p99 {:.3f} ms, fdatasync {:.3f} ms\n", name, run + 1, ours.size(),
               p50.ours.back(), p99.ours.back(), disk);
    std::fflush(stdout);
  }
  report.add(p50);
  report.add(p99);
}

int run(const Settings& settings) {
  std::filesystem::create_directories(settings.directory);
  Report report("bus", fmt::format("windows of {} s, disk-ours-disk, in {}; RocksDB of Debian 12 (assertions on)",
                                   settings.seconds, std::filesystem::absolute(settings.directory).string()));
  for (auto durability : {store::Durability::kAsync, store::Durability::kSync})
    for (uint32_t partitions : {1u, 8u}) run_throughput(partitions, durability, settings, report);
  run_latency(store::Durability::kSync, settings, report);
  run_latency(store::Durability::kAsync, settings, report);
  report.print();
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Settings settings;
  millrace::bench::Options options("bench_bus");
  options.number("runs", settings.runs, "How often each case is measured; figures are medians");
  options.number("seconds", settings.seconds, "Length of a window", 0.1);
  options.text("only", settings.only, "Only the cases whose names begin so");
  options.text("directory", settings.directory, "Where the files are written: it is the disk that is measured");
  return options.run(argc, argv, [&settings] { return millrace::bench::run(settings); });
}
