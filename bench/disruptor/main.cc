// bench_disruptor [--elements N] [--runs N] [--only CASE-PREFIX] [-- PEER COMMAND ..]
//
// Measures the ring against the LMAX Disruptor (started by the peer command, see bench/peers/lmax) in alternating
// windows, and the dispatcher against fixed goals. bench/disruptor/run builds the peer and calls this.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/disruptor/dispatcher_shapes.h"
#include "bench/disruptor/ring_shapes.h"
#include "bench/support/options.h"
#include "bench/support/peer_process.h"
#include "bench/support/report.h"

namespace millrace::bench {
namespace {

/// A run in which the peer's pipeline stays under this says more about the machine at that moment than about the ring.
constexpr double kPeerFloor = 15e6;
constexpr double kGoalPerSecond = 2e6;
constexpr double kGoalIdleUs = 100;

struct Settings {
  int64_t elements = 20'000'000;
  int runs = 7;
  std::string only;
  std::vector<std::string> peer;

  bool wants(const std::string& name) const { return name.rfind(only, 0) == 0; }
  /// Runs that may be void before the case is given up.
  int max_void() const { return 3 * runs; }
};

struct RingCase {
  std::string name;
  std::string peer_command;
  std::function<ShapeResult(int64_t)> ours;
  /// The least the peer must reach for a run to count.
  double peer_floor;
};

Result<ShapeResult> peer_window(PeerProcess& peer, const std::string& command) {
  auto answer = peer.ask(command);
  if (!answer) return tl::unexpected(answer.error());
  int64_t elements = 0;
  double wall_ns = 0, cpu_ns = 0;
  std::istringstream(*answer) >> elements >> wall_ns >> cpu_ns;
  if (elements <= 0 || wall_ns <= 0)
    return fail(ErrorKind::kInvalidArgument, "PEER_ANSWER", fmt::format("the peer answered '{}'", *answer));
  return ShapeResult{elements, {wall_ns * 1e-9, cpu_ns * 1e-9}};
}

/// Peer, ours, peer: the peer's figure of a run is the mean of its two windows.
Status measure_ring_case(const RingCase& ring, const Settings& settings, PeerProcess& peer, Report& report) {
  Case result{.name = ring.name, .unit = "elements/s", .reference_name = "LMAX Disruptor 4.0.0 (Java)"};
  const std::string command = fmt::format(fmt::runtime(ring.peer_command), settings.elements);
  // The peer's code is compiled while it runs: its first windows do not count.
  for (int i = 0; i < 3; ++i)
    if (auto warm = peer_window(peer, command); !warm) return tl::unexpected(warm.error());
  ring.ours(settings.elements / 4);

  for (int run = 0, voided = 0; run < settings.runs;) {
    auto before = peer_window(peer, command);
    if (!before) return tl::unexpected(before.error());
    ShapeResult ours = ring.ours(settings.elements);
    auto after = peer_window(peer, command);
    if (!after) return tl::unexpected(after.error());
    const double theirs = (before->per_second() + after->per_second()) / 2;
    const bool counts = theirs >= ring.peer_floor;
    fmt::print("{} {}: ours {:.1f} M/s, peer {:.1f} and {:.1f} M/s{}\n", ring.name, run + 1, ours.per_second() / 1e6,
               before->per_second() / 1e6, after->per_second() / 1e6, counts ? "" : ", void: the peer is too slow");
    std::fflush(stdout);
    if (!counts) {
      if (++voided > settings.max_void())
        return fail(ErrorKind::kUnavailable, "BENCH_VOID",
                    fmt::format("{}: the peer stayed under {:.0f} M/s in {} runs; the machine is too busy", ring.name,
                                ring.peer_floor / 1e6, voided));
      continue;
    }
    ++run;
    result.ours.push_back(ours.per_second());
    result.our_cpu_us.push_back(ours.cpu_us());
    result.reference.push_back(theirs);
    result.reference_cpu_us.push_back((before->cpu_us() + after->cpu_us()) / 2);
  }
  report.add(std::move(result));
  return {};
}

Status measure_ring(const Settings& settings, Report& report) {
  const std::vector<RingCase> cases{
      {"one-to-three-pipeline", "pipeline {}", run_pipeline, kPeerFloor},
      {"three-to-one", "three-to-one {} 1", [](int64_t n) { return run_three_to_one(n, 1); }, 0},
      {"three-to-one-batch-10", "three-to-one {} 10", [](int64_t n) { return run_three_to_one(n, 10); }, 0}};
  std::optional<PeerProcess> peer;
  for (const RingCase& ring : cases) {
    if (!settings.wants(ring.name)) continue;
    if (settings.peer.empty()) {
      for (int run = 0; run < settings.runs; ++run)
        fmt::print("{}: ours {:.1f} M/s, no peer given\n", ring.name, ring.ours(settings.elements).per_second() / 1e6);
      continue;
    }
    if (!peer) {
      auto started = PeerProcess::start(settings.peer);
      if (!started) return tl::unexpected(started.error());
      peer.emplace(std::move(*started));
    }
    MILLRACE_TRY(measure_ring_case(ring, settings, *peer, report));
  }
  return {};
}

void measure_dispatcher(const Settings& settings, Report& report) {
  struct Shape {
    std::string name;
    int levels;
    size_t threads;
  };
  std::vector<Shape> shapes;
  for (int levels : {1, 3, 6, 8}) shapes.push_back({fmt::format("dispatcher-levels-{}", levels), levels, 1});
  shapes.push_back({"dispatcher-levels-6-two-threads", 6, 2});
  shapes.push_back({"dispatcher-levels-6-thread-each", 6, 0});
  for (const Shape& shape : shapes) {
    if (!settings.wants(shape.name)) continue;
    Case result{.name = shape.name, .unit = "elements/s", .reference_name = "goal", .reference = {kGoalPerSecond}};
    for (int run = 0; run < settings.runs; ++run) {
      ShapeResult ours = run_dispatcher(shape.levels, shape.threads, settings.elements / 4);
      result.ours.push_back(ours.per_second());
      result.our_cpu_us.push_back(ours.cpu_us());
    }
    report.add(std::move(result));
  }
  shapes = {{"dispatcher-idle-latency-6", 6, 1}, {"dispatcher-idle-latency-6-thread-each", 6, 0}};
  for (const Shape& shape : shapes) {
    if (!settings.wants(shape.name)) continue;
    Case result{.name = shape.name,
                .unit = "us p50",
                .better = Better::kLower,
                .reference_name = "goal",
                .reference = {kGoalIdleUs}};
    for (int run = 0; run < settings.runs; ++run)
      result.ours.push_back(median(idle_latencies_us(shape.levels, shape.threads, 500)));
    report.add(std::move(result));
  }
}

int run(const Settings& settings) {
  Report report("disruptor",
                "in memory, durability none; ring: default waiting, alternating windows of peer, ours, peer");
  auto status = measure_ring(settings, report);
  measure_dispatcher(settings, report);
  report.print();
  if (!status) fmt::print(stderr, "bench_disruptor: {}\n", to_string(status.error()));
  return status ? 0 : 1;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Settings settings;
  millrace::bench::Options options("bench_disruptor");
  options.number("elements", settings.elements, "Elements through the ring in a window", 100);
  options.number("runs", settings.runs, "How often each case is measured; figures are medians");
  options.text("only", settings.only, "Only the cases whose names begin so");
  options.command(settings.peer, "Behind --: how to start the peer");
  return options.run(argc, argv, [&settings] { return millrace::bench::run(settings); });
}
