#include "bench/disruptor/ring_shapes.h"

#include <latch>
#include <limits>
#include <thread>
#include <vector>

#include "base/result.h"
#include "disruptor/ring.h"

namespace millrace::bench {
namespace {

using disruptor::Barrier;
using disruptor::Eventcount;
using disruptor::Producers;
using disruptor::Ring;
using disruptor::WaitPolicy;

constexpr size_t kPipelineSlots = 8 * 1024;
constexpr size_t kThreeToOneSlots = 64 * 1024;
constexpr int64_t kProducers = 3;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

struct Step {
  int64_t first, second, sum, shifted;
};

/// Takes everything up to `elements` from what `available(from)` says is there, a batch at a time, through `handle`
/// and past `passed`; waits on `event` when there is nothing.
template <typename Available, typename Handle>
void consume(int64_t elements, Eventcount& event, Barrier& passed, Available available, Handle handle) {
  for (int64_t at = 0; at < elements;) {
    auto key = event.key();
    int64_t end = available(at);
    if (end == at) {
      event.wait(key, WaitPolicy{}, [&] { return (end = available(at)) > at; });
      continue;
    }
    const int64_t taken = end - at;
    for (; at < end; ++at) handle(at);
    passed.advance(end);
    disruptor::let_batch_grow(taken, WaitPolicy{});
  }
}

}  // namespace

ShapeResult run_pipeline(int64_t elements) {
  Ring<Step> ring(kPipelineSlots, Producers::kSingle);
  Barrier after_one, after_two, after_three;
  Eventcount one_moved, two_moved;
  after_one.wakes(one_moved);
  after_two.wakes(two_moved);
  ring.gate_on(after_three);
  int64_t count = 0;
  std::latch running(4);
  std::vector<std::thread> consumers;
  consumers.emplace_back([&] {
    running.arrive_and_wait();
    consume(
        elements, *ring.published_event(), after_one,
        [&](int64_t from) { return ring.highest_published(from, kNoLimit); },
        [&](int64_t at) { ring[at].sum = ring[at].first + ring[at].second; });
  });
  consumers.emplace_back([&] {
    running.arrive_and_wait();
    consume(
        elements, one_moved, after_two, [&](int64_t) { return after_one.get(); },
        [&](int64_t at) { ring[at].shifted = ring[at].sum + 3; });
  });
  consumers.emplace_back([&] {
    running.arrive_and_wait();
    int64_t odd = 0;
    consume(
        elements, two_moved, after_three, [&](int64_t) { return after_two.get(); },
        [&](int64_t at) { odd += (ring[at].shifted & 4) == 4; });
    count = odd;
  });
  running.arrive_and_wait();
  Window window = measure([&] {
    int64_t second = 777;
    for (int64_t i = 0; i < elements; ++i) {
      int64_t at = ring.claim();
      ring[at].first = i;
      ring[at].second = second--;
      ring.publish(at);
    }
    ring.wait_freed(elements);
  });
  for (auto& consumer : consumers) consumer.join();
  // first + second is 777 for every element, and 777 + 3 has bit 2 set.
  MILLRACE_ASSERT(count == elements, "the pipeline lost elements");
  return {elements, window};
}

ShapeResult run_three_to_one(int64_t elements, int64_t batch) {
  const int64_t each = elements / kProducers / batch * batch;
  const int64_t total = each * kProducers;
  Ring<int64_t> ring(kThreeToOneSlots, Producers::kMulti);
  Barrier passed;
  ring.gate_on(passed);
  int64_t sum = 0;
  std::latch together(kProducers + 2);
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    together.arrive_and_wait();
    int64_t total_sum = 0;
    consume(
        total, *ring.published_event(), passed, [&](int64_t from) { return ring.highest_published(from, kNoLimit); },
        [&](int64_t at) { total_sum += ring[at]; });
    sum = total_sum;
  });
  for (int64_t p = 0; p < kProducers; ++p)
    threads.emplace_back([&] {
      together.arrive_and_wait();
      for (int64_t i = 0; i < each; i += batch) {
        int64_t first = ring.claim(batch);
        for (int64_t k = 0; k < batch; ++k) ring[first + k] = i + k;
        ring.publish(first, batch);
      }
    });
  Window window = measure([&] {
    together.arrive_and_wait();
    ring.wait_freed(total);
  });
  for (auto& thread : threads) thread.join();
  MILLRACE_ASSERT(sum == kProducers * (each * (each - 1) / 2), "three-to-one lost elements");
  return {total, window};
}

}  // namespace millrace::bench
