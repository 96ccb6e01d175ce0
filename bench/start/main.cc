// bench_start --daemon PATH [--runs N] [--records N] [--directory DIR]
//
// How long the real daemon takes to be ready again with a million records in a thousand partitions, after SIGKILL and
// after a clean stop; what it needs while it has nothing to do. Held against fixed goals. Each run after SIGKILL starts
// on a copy of the same killed directory, because a start repairs what the next one would otherwise have to.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "bench/support/daemon.h"
#include "bench/support/options.h"
#include "bench/support/report.h"

namespace millrace::bench {
namespace {

struct Settings {
  std::string daemon;
  int runs = 5;
  int records = 1'000'000;
  std::string directory = ".";
};

constexpr int kPartitions = 1'000, kRecordsPerRequest = 1'000;

/// Keyed, so that they spread over the partitions: nearly every one is a batch of its own, which is the dearest way to
/// keep so many.
void fill(Daemon& daemon, int records) {
  daemon.must("POST", "/v1/topics", fmt::format(R"({{"name":"bench","partitions":{}}})", kPartitions));
  for (int first = 0; first < records; first += kRecordsPerRequest) {
    std::string body = R"({"records":[)";
    for (int i = first; i < std::min(records, first + kRecordsPerRequest); ++i)
      body += fmt::format(R"({}{{"key":"key-{}","value":{{"number":{},"text":"one of very many"}}}})",
                          i == first ? "" : ",", i, i);
    daemon.must("POST", "/v1/topics/bench/records", body + "]}");
  }
}

/// What the quickstart does to a node: some eight hundred records in requests of twenty, all read back.
void light_load(Daemon& daemon) {
  daemon.must("POST", "/v1/topics", R"({"name":"packages","partitions":8})");
  for (int request = 0; request < 40; ++request) {
    std::string body = R"({"records":[)";
    for (int i = 0; i < 20; ++i)
      body += fmt::format(R"({}{{"key":"package-{}","value":{{"Package":"package-{}","Maintainer":"{}"}}}})",
                          i == 0 ? "" : ",", request * 20 + i, request * 20 + i, std::string(200, 'm'));
    daemon.must("POST", "/v1/topics/packages/records", body + "]}");
  }
  for (int partition = 0; partition < 8; ++partition)
    daemon.must("GET", fmt::format("/v1/topics/packages/partitions/{}/records?offset=0", partition));
}

Case goal(std::string name, std::string unit, double value) {
  return {.name = std::move(name),
          .unit = std::move(unit),
          .better = Better::kLower,
          .reference_name = "goal",
          .reference = {value},
          .durability = "sync"};
}

double idle_cpu_percent(Daemon& daemon) {
  constexpr double kSeconds = 5;
  const double before = daemon.cpu_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
  return (daemon.cpu_seconds() - before) / kSeconds * 100;
}

void measure_memory(const Settings& settings, const std::filesystem::path& data, Report& report) {
  Case fresh = goal("rss-fresh", "MB", 64), loaded = goal("rss-after-light-load", "MB", 128),
       cpu = goal("idle-cpu", "% of a core", 1);
  for (int run = 0; run < settings.runs; ++run) {
    std::filesystem::remove_all(data);
    Daemon daemon(settings.daemon, data);
    cpu.ours.push_back(std::max(idle_cpu_percent(daemon), 0.01));
    fresh.ours.push_back(daemon.rss_mb());
    light_load(daemon);
    loaded.ours.push_back(daemon.rss_mb());
    fmt::print("memory {}: fresh {:.1f} MB, loaded {:.1f} MB, idle {:.2f} % of a core\n", run + 1, fresh.ours.back(),
               loaded.ours.back(), cpu.ours.back());
    std::fflush(stdout);
  }
  for (auto& result : {fresh, loaded, cpu}) report.add(result);
}

void measure_starts(const Settings& settings, const std::filesystem::path& data, Report& report) {
  const std::filesystem::path killed = data.string() + "-killed";
  std::filesystem::remove_all(data);
  std::filesystem::remove_all(killed);
  {
    const double began = steady_seconds();
    Daemon daemon(settings.daemon, data);
    fill(daemon, settings.records);
    fmt::print("{} records in {} partitions written in {:.1f} s, {:.0f} MB resident\n", settings.records, kPartitions,
               steady_seconds() - began, daemon.rss_mb());
    daemon.kill();
    std::filesystem::rename(data, killed);
    // Sockets cannot be copied; the next daemon makes its own.
    for (const auto& entry : std::filesystem::directory_iterator(killed))
      if (entry.is_socket()) std::filesystem::remove(entry.path());
  }
  Case after_kill = goal("ready-after-kill-1M", "ms", 2'000), after_stop = goal("ready-after-stop-1M", "ms", 1'000);
  for (int run = 0; run < settings.runs; ++run) {
    std::filesystem::remove_all(data);
    std::filesystem::copy(killed, data, std::filesystem::copy_options::recursive);
    Daemon daemon(settings.daemon, data);
    after_kill.ours.push_back(daemon.ready_seconds() * 1e3);
    daemon.stop();
    Daemon again(settings.daemon, data);
    after_stop.ours.push_back(again.ready_seconds() * 1e3);
    again.stop();
    fmt::print("start {}: {:.0f} ms after SIGKILL, {:.0f} ms after a clean stop\n", run + 1, after_kill.ours.back(),
               after_stop.ours.back());
    std::fflush(stdout);
  }
  report.add(after_kill);
  report.add(after_stop);
  std::filesystem::remove_all(killed);
}

int run(const Settings& settings) {
  const auto data = std::filesystem::absolute(settings.directory) / "bench-start-data";
  Report report("start", fmt::format("the real daemon, {} records in {} partitions, in {}", settings.records,
                                     kPartitions, data.parent_path().string()));
  measure_starts(settings, data, report);
  measure_memory(settings, data, report);
  std::filesystem::remove_all(data);
  std::filesystem::remove(data.string() + ".log");
  report.print();
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Settings settings;
  millrace::bench::Options options("bench_start");
  options.text("daemon", settings.daemon, "The millraced to measure", true);
  options.number("runs", settings.runs, "How often each case is measured; figures are medians");
  options.number("records", settings.records, "Records that the started node holds");
  options.text("directory", settings.directory, "Where the files are written: it is the disk that is measured");
  return options.run(argc, argv, [&settings] { return millrace::bench::run(settings); });
}
