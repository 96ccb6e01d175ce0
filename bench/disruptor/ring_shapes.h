#pragma once

#include <cstdint>

#include "bench/support/report.h"

/// The ring in the shapes of LMAX's own throughput tests, waiting as it does by default. bench/peers/lmax mirrors them.
namespace millrace::bench {

struct ShapeResult {
  int64_t elements = 0;
  Window window;
  double per_second() const { return static_cast<double>(elements) / window.seconds; }
  double cpu_us() const { return window.cpu_seconds * 1e6 / static_cast<double>(elements); }
};

/// One producer that publishes one element at a time, three consumers one behind the other, 8192 slots.
ShapeResult run_pipeline(int64_t elements);
/// Three producers that publish `batch` elements at a time, one consumer, 65536 slots.
ShapeResult run_three_to_one(int64_t elements, int64_t batch);

}  // namespace millrace::bench
