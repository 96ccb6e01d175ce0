// bench_http --daemon PATH --script PRODUCE.LUA [--runs N] [--seconds S] [--directory DIR]
//
// The real daemon under wrk, on the same two cores. Producing one record of 256 bytes a request over 1, 16 and 64 kept
// connections, beside what the disk can do in interleaved windows; reading a small resource, by CPU time of the daemon,
// beside a server that answers without looking at the request.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/http/fixed_answer.h"
#include "bench/support/daemon.h"
#include "bench/support/disk.h"
#include "bench/support/options.h"
#include "bench/support/report.h"

namespace millrace::bench {
namespace {

struct Settings {
  std::string daemon, script;
  int runs = 5;
  int seconds = 2;
  std::string directory = ".";
};

/// What the log writes for one such request: the batch, its key, its frame, about.
constexpr size_t kLogBytes = 400;

struct Load {
  double per_second = 0;
  double p99_seconds = 0;
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench: {}\n", why);
  std::exit(1);
}

/// "1.25ms", "830.00us", "1.02s".
double seconds_of(const std::string& text) {
  double value = std::atof(text.c_str());
  if (text.find("us") != std::string::npos) return value * 1e-6;
  if (text.find("ms") != std::string::npos) return value * 1e-3;
  return value;
}

/// What follows `label` on its line of wrk's report.
std::string field(const std::string& report, const std::string& label) {
  size_t at = report.find(label);
  if (at == std::string::npos) give_up("wrk did not say '" + label + "':\n" + report);
  at = report.find_first_not_of(' ', at + label.size());
  return report.substr(at, report.find('\n', at) - at);
}

Load wrk(const Settings& settings, uint16_t port, int connections, const std::string& target, bool produce) {
  std::string command =
      fmt::format("wrk -t {} -c {} -d {}s --latency {} http://127.0.0.1:{}{} 2>&1", std::min(connections, 2),
                  connections, settings.seconds, produce ? "-s " + settings.script : "", port, target);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) give_up("cannot run wrk");
  std::string report;
  std::array<char, 4096> buffer;
  for (size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) report.append(buffer.data(), n);
  if (::pclose(pipe) != 0) give_up("wrk failed:\n" + report);
  for (const char* trouble : {"Non-2xx", "Socket errors"})
    if (report.find(trouble) != std::string::npos) give_up("wrk saw errors:\n" + report);
  return {std::atof(field(report, "Requests/sec:").c_str()), seconds_of(field(report, " 99%"))};
}

void measure_produce(const Settings& settings, Daemon& daemon, int connections, Report& report) {
  const std::string name = fmt::format("produce-{}-connections", connections);
  Case rate{.name = name, .unit = "records/s", .reference_name = "fdatasync/s", .durability = "sync"};
  Case latency{.name = name + "-p99",
               .unit = "ms",
               .better = Better::kLower,
               .reference_name = "one sync",
               .durability = "sync"};
  for (int run = 0; run < settings.runs; ++run) {
    Disk before = append_for(settings.directory, settings.seconds / 2.0, kLogBytes, true);
    const double cpu = daemon.cpu_seconds();
    Load load = wrk(settings, daemon.port(), connections, "/v1/topics/bench/records", true);
    const double used = daemon.cpu_seconds() - cpu;
    Disk after = append_for(settings.directory, settings.seconds / 2.0, kLogBytes, true);
    const double disk = (before.per_second + after.per_second) / 2;
    rate.ours.push_back(load.per_second);
    rate.reference.push_back(disk);
    rate.our_cpu_us.push_back(used * 1e6 / (load.per_second * settings.seconds));
    latency.ours.push_back(load.p99_seconds * 1e3);
    latency.reference.push_back(1e3 / disk);
    fmt::print("{} {}: {:.0f} records/s, p99 {:.2f} ms, disk {:.0f} a second\n", name, run + 1, load.per_second,
               load.p99_seconds * 1e3, disk);
    std::fflush(stdout);
  }
  report.add(rate);
  report.add(latency);
}

void measure_get(const Settings& settings, Daemon& daemon, Report& report) {
  const std::string target = "/v1/topics/bench";
  const std::string body = daemon.must("GET", target);
  FixedAnswer floor(fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                                body.size(), body));
  Case result{.name = "get-small-per-core", .unit = "requests/s a core", .reference_name = "answers without looking"};
  constexpr int kConnections = 16;
  // Requests for each second of CPU time that the server used.
  auto per_core = [&](uint16_t port, auto cpu_seconds) {
    const double before = cpu_seconds();
    Load load = wrk(settings, port, kConnections, target, false);
    return load.per_second * settings.seconds / (cpu_seconds() - before);
  };
  for (int run = 0; run < settings.runs; ++run) {
    auto floor_window = [&] { return per_core(floor.port(), [&] { return floor.cpu_seconds(); }); };
    const double before = floor_window();
    result.ours.push_back(per_core(daemon.port(), [&] { return daemon.cpu_seconds(); }));
    result.reference.push_back((before + floor_window()) / 2);
    result.our_cpu_us.push_back(1e6 / result.ours.back());
    result.reference_cpu_us.push_back(1e6 / result.reference.back());
    fmt::print("get {}: {:.0f} requests/s a core, without looking {:.0f}\n", run + 1, result.ours.back(),
               result.reference.back());
    std::fflush(stdout);
  }
  report.add(result);
}

int run(const Settings& settings) {
  const auto data = std::filesystem::absolute(settings.directory) / "bench-http-data";
  std::filesystem::remove_all(data);
  Report report("http", fmt::format("wrk on the same cores, windows of {} s; producing: disk-ours-disk, in {}",
                                    settings.seconds, data.parent_path().string()));
  {
    Daemon daemon(settings.daemon, data);
    daemon.must("POST", "/v1/topics", R"({"name":"bench","partitions":8})");
    for (int connections : {1, 16, 64}) measure_produce(settings, daemon, connections, report);
    measure_get(settings, daemon, report);
    daemon.stop();
  }
  std::filesystem::remove_all(data);
  std::filesystem::remove(data.string() + ".log");
  report.print();
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Settings settings;
  millrace::bench::Options options("bench_http");
  options.text("daemon", settings.daemon, "The millraced to measure", true);
  options.text("script", settings.script, "The load generator's script for producing", true);
  options.number("runs", settings.runs, "How often each case is measured; figures are medians");
  options.number("seconds", settings.seconds, "Length of a window");
  options.text("directory", settings.directory, "Where the files are written: it is the disk that is measured");
  return options.run(argc, argv, [&settings] { return millrace::bench::run(settings); });
}
