#pragma once

#include <cstdint>
#include <vector>

#include "bench/disruptor/ring_shapes.h"

/// The dispatcher with consumers that do nothing, with its default options.
namespace millrace::bench {

/// `elements` small elements from one thread through `levels` levels on `threads` threads (0: one each), each with a
/// completion; who enters comes again when told "full".
ShapeResult run_dispatcher(int levels, size_t threads, int64_t elements);

/// Microseconds from entering an element into an idle dispatcher until its completion is called, one value for each
/// of `samples` elements; its threads sleep when it enters.
std::vector<double> idle_latencies_us(int levels, size_t threads, int samples);

}  // namespace millrace::bench
