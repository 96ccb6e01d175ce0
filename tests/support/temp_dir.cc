#include "tests/support/temp_dir.h"

#include <cstdlib>
#include <stdexcept>

namespace millrace::tests {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "millrace-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + pattern);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;  // A leftover in /tmp is no reason to fail a test.
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace millrace::tests
