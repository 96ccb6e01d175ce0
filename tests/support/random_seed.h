#pragma once

#include <cstdint>

namespace millrace::tests {

/// The seed of a random test: MILLRACE_TEST_SEED when that is set (to repeat a failure), else a fresh one. It is
/// printed, so that the log of a failure says how to repeat it.
uint64_t random_seed();

}  // namespace millrace::tests
