#include "bench/disruptor/dispatcher_shapes.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "disruptor/dispatcher.h"

namespace millrace::bench {
namespace {

struct Item {
  int64_t value;
  size_t memory_size() const noexcept { return sizeof(Item); }
};

using ItemDispatcher = disruptor::Dispatcher<Item>;

std::unique_ptr<ItemDispatcher> make(int levels, size_t threads) {
  std::vector<disruptor::Level<Item>> made;
  for (int i = 0; i < levels; ++i)
    made.push_back(disruptor::per_element<Item>("level" + std::to_string(i),
                                                [](Item&) { return disruptor::Verdict::Continue(); }));
  auto dispatcher =
      ItemDispatcher::create({.name = "bench", .abort_when_full = false, .threads = threads}, std::move(made));
  if (!dispatcher) {
    std::fprintf(stderr, "%s\n", to_string(dispatcher.error()).c_str());
    std::exit(1);
  }
  return std::move(*dispatcher);
}

}  // namespace

ShapeResult run_dispatcher(int levels, size_t threads, int64_t elements) {
  auto dispatcher = make(levels, threads);
  int64_t completed = 0;  // by the last level's thread; read after the stop
  Window window = measure([&] {
    for (int64_t i = 0; i < elements; ++i) {
      // A refused element's completion is called on this thread.
      auto count = [&completed](Item&, const disruptor::Outcome& outcome) {
        if (outcome.accepted()) ++completed;
      };
      while (dispatcher->process_element({i}, count) == disruptor::kNotAccepted) std::this_thread::yield();
    }
    dispatcher->shutdown(disruptor::Pending::kDrain);
  });
  MILLRACE_ASSERT(completed == elements, "the dispatcher lost completions");
  return {elements, window};
}

std::vector<double> idle_latencies_us(int levels, size_t threads, int samples) {
  const auto& clock = SystemClock::instance();
  auto dispatcher = make(levels, threads);
  std::vector<double> latencies;
  std::atomic<int64_t> completed_ns{0};
  for (int i = 0; i < samples; ++i) {
    // Long enough for every thread to have spun, yielded and gone to sleep.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    completed_ns.store(0, std::memory_order_relaxed);
    const int64_t entered_ns = clock.steady_ns();
    dispatcher->process_element({i}, [&](Item&, const disruptor::Outcome&) {
      completed_ns.store(clock.steady_ns(), std::memory_order_release);
    });
    int64_t done_ns = 0;
    while ((done_ns = completed_ns.load(std::memory_order_acquire)) == 0) std::this_thread::yield();
    latencies.push_back(static_cast<double>(done_ns - entered_ns) / 1000);
  }
  return latencies;
}

}  // namespace millrace::bench
