#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A fuzz target: one file that defines the three functions below. Under clang libFuzzer drives it; under every
/// compiler driver.cc does, with seeded mutations, as a ctest.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace millrace::fuzz {

/// Inputs from which mutation starts: at least one that is accepted.
std::vector<std::string> seed_inputs();
/// Pieces that mutation alone would not find.
std::vector<std::string> dictionary();

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process with `what` when `holds` is false: the target's own findings, beside the sanitizers'.
void require(bool holds, const char* what);

}  // namespace millrace::fuzz
