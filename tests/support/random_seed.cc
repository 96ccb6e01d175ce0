#include "tests/support/random_seed.h"

#include <cstdio>
#include <cstdlib>
#include <random>

namespace millrace::tests {

uint64_t random_seed() {
  uint64_t seed = 0;
  if (const char* given = std::getenv("MILLRACE_TEST_SEED")) {
    seed = std::strtoull(given, nullptr, 0);
  } else {
    std::random_device device;
    seed = uint64_t{device()} << 32 | device();
  }
  std::printf("MILLRACE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);  // A test that aborts would take it along.
  return seed;
}

}  // namespace millrace::tests
