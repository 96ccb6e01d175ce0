#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/target.h"

namespace millrace::fuzz {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

}  // namespace millrace::fuzz
