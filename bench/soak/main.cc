// bench_soak [--minutes M] [--megabytes-per-second R] [--directory DIR]
//
// A steady load with retention of ten seconds and a compacted topic, for as long as one likes: what is kept on disk and
// in memory must stay as it is, and no commit may wait for what goes on in the background. Nine tenths of the bytes go
// to a topic whose records are kept for ten seconds, one tenth to a compacted one of 10,000 keys; a reader follows.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/histogram.h"
#include "bench/support/bus.h"
#include "bench/support/disk.h"
#include "bench/support/options.h"
#include "bench/support/report.h"
#include "bus/log_keeper.h"
#include "bus/record_batch.h"
#include "proto/bus.pb.h"

namespace millrace::bench {
namespace {

struct Settings {
  double minutes = 30;
  double megabytes_per_second = 20;
  std::string directory = ".";
};

constexpr int kBatchRecords = 16;
constexpr size_t kValueBytes = 1'000;
constexpr uint64_t kKeys = 10'000;
/// How often disk and memory are looked at.
constexpr double kSampleSeconds = 10;

Bytes keyed_batch(std::mt19937_64& random) {
  bus::BatchBuilder builder;
  bus::RecordView record;
  // Not one that compresses to nothing.
  Bytes value(kValueBytes, '\0');
  for (size_t i = 0; i < value.size(); i += 2) value[i] = static_cast<char>(random());
  record.timestamp_ms = SystemClock::instance().wall_ms();
  for (int i = 0; i < kBatchRecords; ++i) {
    const Bytes key = std::to_string(random() % kKeys);
    record.key = key;
    record.value = value;
    builder.add(record);
  }
  return builder.finish();
}

double disk_mb(const std::filesystem::path& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    if (auto size = entry->file_size(gone); !gone) bytes += size;
  }
  return static_cast<double>(bytes) / 1e6;
}

double rss_mb() {
  std::ifstream in("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  in >> size >> resident;
  return static_cast<double>(resident) * 4096 / 1e6;
}

/// Commits on their way, and how long each took.
class Answers {
 public:
  void begin() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ < 1'000; });
    ++count_;
  }
  void end(double seconds) {
    latencies_.record(static_cast<uint64_t>(seconds * 1e9));
    double longest = longest_.load();
    while (seconds > longest && !longest_.compare_exchange_weak(longest, seconds)) continue;
    std::lock_guard lock(mutex_);
    --count_;
    changed_.notify_one();
  }
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ == 0; });
  }
  const Histogram& latencies() const { return latencies_; }
  double longest() const { return longest_.load(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  Histogram latencies_;
  std::atomic<double> longest_{0};
};

struct Sample {
  double disk_mb, rss_mb;
};

/// The highest of a third of the samples.
double highest(const std::vector<Sample>& samples, size_t third, double Sample::*field) {
  double most = 0;
  for (size_t i = samples.size() * third / 3; i < samples.size() * (third + 1) / 3; ++i)
    most = std::max(most, samples[i].*field);
  return most;
}

int run(const Settings& settings) {
  std::filesystem::create_directories(settings.directory);
  std::mt19937_64 random(1);
  const double batch_bytes = static_cast<double>(keyed_batch(random).size());
  // The disk alone, before and after: the same bytes, the same pace.
  Histogram syncs;
  auto look_at_disk = [&] {
    sync_at_rate(settings.directory, std::min(30.0, settings.minutes * 6), static_cast<size_t>(batch_bytes),
                 settings.megabytes_per_second * 1e6 / batch_bytes, syncs);
  };
  look_at_disk();
  Bus bus(settings.directory, store::Durability::kSync);
  proto::TopicConfig brief, compacted;
  brief.set_retention_ms(10'000);
  compacted.set_cleanup_policy("compact");
  compacted.set_segment_bytes(16 << 20);
  const Uuid stream = bus.add_topic("stream", brief), state = bus.add_topic("state", compacted);
  bus::LogKeeper::Options keeping;
  keeping.interval = std::chrono::seconds(2);
  bus::LogKeeper keeper(bus.pipeline(), bus.store(), SystemClock::instance(), keeping);
  keeper.start(bus.health());

  Answers answers;
  std::atomic<bool> finished{false};
  std::atomic<uint64_t> read_bytes{0}, overtaken{0};
  std::thread reader([&] {
    std::vector<uint64_t> positions(Bus::kPartitions, 0);
    while (!finished.load()) {
      for (uint32_t p = 0; p < Bus::kPartitions; ++p) {
        auto view = bus.pipeline().view();
        auto fetched = view->fetch({stream, p}, positions[p], 1 << 20);
        if (!fetched) {
          ++overtaken;
          positions[p] = view->partition({stream, p})->log_start;
          continue;
        }
        for (const Bytes& batch : *fetched) {
          read_bytes += batch.size();
          positions[p] = static_cast<uint64_t>(bus::read_batch_info(batch)->next_offset());
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });

  const double interval = batch_bytes / (settings.megabytes_per_second * 1e6);
  const double began = steady_seconds(), end = began + settings.minutes * 60;
  std::vector<Sample> samples;
  double next_sample = began + kSampleSeconds, due = began;
  uint64_t sent = 0;
  for (; due < end; ++sent, due += interval) {
    if (const double now = steady_seconds(); now < due)
      std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
    answers.begin();
    const Uuid& topic = sent % 10 == 0 ? state : stream;
    const double submitted = steady_seconds();
    bus.commit({topic, static_cast<uint32_t>(random() % Bus::kPartitions)}, keyed_batch(random),
               [&answers, submitted] { answers.end(steady_seconds() - submitted); });
    if (submitted < next_sample) continue;
    next_sample += kSampleSeconds;
    samples.push_back({disk_mb(settings.directory), rss_mb()});
    fmt::print(
        "{:5.0f} s: {:.1f} MB/s, disk {:.0f} MB, RSS {:.0f} MB, p50 {:.2f} ms, p99 {:.2f} ms, longest {:.0f} ms; "
        "{} segments, {} removed, {:.0f} MB compacted away, reader overtaken {} times\n",
        submitted - began, static_cast<double>(sent) * batch_bytes / 1e6 / (submitted - began), samples.back().disk_mb,
        samples.back().rss_mb, static_cast<double>(answers.latencies().quantile(0.5)) / 1e6,
        static_cast<double>(answers.latencies().quantile(0.99)) / 1e6, answers.longest() * 1e3,
        keeper.stats().segments.load(), keeper.stats().removed_segments.load(),
        static_cast<double>(keeper.stats().compacted_bytes.load()) / 1e6, overtaken.load());
    std::fflush(stdout);
  }
  answers.wait_for_none();
  finished = true;
  reader.join();
  keeper.stop();
  look_at_disk();
  for (const std::string& damage : keeper.damages()) fmt::print("damage: {}\n", damage);

  Report report("soak",
                fmt::format("{} minutes at {} MB/s, retention 10 s, one tenth compacted, in {}", settings.minutes,
                            settings.megabytes_per_second, std::filesystem::absolute(settings.directory).string()));
  auto ms = [&](double q) { return static_cast<double>(answers.latencies().quantile(q)) / 1e6; };
  auto add = [&](std::string name, std::string unit, std::string reference_name, double ours, double reference) {
    Case one{.name = std::move(name),
             .unit = std::move(unit),
             .better = Better::kLower,
             .reference_name = std::move(reference_name),
             .durability = "sync"};
    one.ours = {ours};
    one.reference = {reference};
    report.add(one);
  };
  add("commit-p99", "ms", "5 times the median", ms(0.99), 5 * ms(0.5));
  auto sync_ms = [&](double q) { return static_cast<double>(syncs.quantile(q)) / 1e6; };
  fmt::print("the disk alone: a sync p50 {:.2f} ms, p99 {:.2f} ms, longest {:.0f} ms\n", sync_ms(0.5), sync_ms(0.99),
             sync_ms(1));
  add("commit-p99-over-median", "times", "a sync's p99 over its median, the disk alone", ms(0.99) / ms(0.5),
      sync_ms(0.99) / sync_ms(0.5));
  add("longest-commit", "ms", "1 s", answers.longest() * 1e3, 1'000);
  if (samples.size() >= 6) {
    add("disk", "MB, highest of the last third", "of the third before, and a tenth",
        highest(samples, 2, &Sample::disk_mb), 1.1 * highest(samples, 1, &Sample::disk_mb));
    add("rss", "MB, highest of the last third", "of the third before, and a tenth",
        highest(samples, 2, &Sample::rss_mb), 1.1 * highest(samples, 1, &Sample::rss_mb));
  }
  report.print();
  return keeper.damages().empty() ? 0 : 1;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Settings settings;
  millrace::bench::Options options("bench_soak");
  options.number("minutes", settings.minutes, "How long", 0.1);
  options.number("megabytes-per-second", settings.megabytes_per_second, "How much is appended", 0.1);
  options.text("directory", settings.directory, "Where the files are written");
  return options.run(argc, argv, [&settings] { return millrace::bench::run(settings); });
}
