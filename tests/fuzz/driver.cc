#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>

#include <CLI/CLI.hpp>

#include "tests/fuzz/target.h"
#include "tests/support/random_seed.h"

/// Drives one target without libFuzzer: its seed inputs, every cut of them, then mutations of them. Deterministic for
/// a seed, so that a finding can be repeated with any compiler and under any sanitizer.
namespace {

using millrace::fuzz::dictionary;
using millrace::fuzz::seed_inputs;

/// libFuzzer's own default.
constexpr size_t kMaxInputBytes = 4096;
/// A cut at every byte of a long seed input would take all the time there is.
constexpr size_t kMaxCuts = 2048;

std::string current;  // what the target is looking at, for the signal handler

void run(const std::string& input) {
  current = input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
}

/// Shows the input in hexadecimal. Only what a signal handler may call.
extern "C" void show_input(int signal) {
  static const char kDigits[] = "0123456789abcdef";
  static char line[2 * kMaxInputBytes + 1];
  size_t size = 0;
  for (unsigned char c : std::string_view(current).substr(0, kMaxInputBytes)) {
    line[size++] = kDigits[c >> 4];
    line[size++] = kDigits[c & 15];
  }
  line[size++] = '\n';
  (void)!write(2, "fuzz: input ", 12);
  (void)!write(2, line, size);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed), pool_(seed_inputs()), tokens_(dictionary()) {}

  std::string next() {
    std::string text = pool_[pick(pool_.size())];
    for (size_t left = 1 + pick(8); left > 0; --left) mutate(text);
    if (text.size() > kMaxInputBytes) text.resize(kMaxInputBytes);
    return text;
  }

 private:
  /// In [0, bound).
  size_t pick(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }
  /// A place in `text`, its end included.
  size_t place(const std::string& text) { return pick(text.size() + 1); }

  void mutate(std::string& text) {
    const size_t at = place(text);
    switch (pick(9)) {
      case 0:  // one bit
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << pick(8)));
        break;
      case 1:  // one byte
        if (at < text.size()) text[at] = static_cast<char>(pick(256));
        break;
      case 2:
        text.insert(at, 1 + pick(3), static_cast<char>(pick(256)));
        break;
      case 3:
        text.erase(at, 1 + pick(8));
        break;
      case 4: {  // a piece again, somewhere else
        std::string piece = text.substr(at, 1 + pick(32));
        text.insert(place(text), piece);
        break;
      }
      case 5: {  // a piece of another seed input
        const std::string& other = pool_[pick(pool_.size())];
        text.insert(at, other.substr(pick(other.size() + 1), 1 + pick(64)));
        break;
      }
      case 6:
        if (!tokens_.empty()) text.insert(at, tokens_[pick(tokens_.size())]);
        break;
      case 7: {  // a number at its limits, where a length or count may be
        static constexpr uint64_t kEdges[] = {0,           1,           0x7f,         0x80,      0xff,
                                              0x7fff'ffff, 0x8000'0000, ~uint64_t{0}, 1ull << 63};
        const uint64_t edge = kEdges[pick(std::size(kEdges))];
        const size_t bytes = size_t{1} << pick(4);
        for (size_t i = 0; i < bytes && at + i < text.size(); ++i)
          text[at + i] = static_cast<char>(edge >> (8 * (bytes - 1 - i)));
        break;
      }
      case 8:
        text.resize(at);
        break;
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> pool_;
  std::vector<std::string> tokens_;
};

void run_seed_inputs() {
  for (const std::string& input : seed_inputs()) {
    run(input);
    const size_t step = 1 + input.size() / kMaxCuts;
    for (size_t size = 0; size < input.size(); size += step) run(input.substr(0, size));
  }
}

void write_corpus(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  size_t number = 0;
  for (const std::string& input : seed_inputs()) {
    std::ofstream file(folder / ("seed-" + std::to_string(number++)), std::ios::binary);
    file << input;
    if (!file.flush()) throw std::runtime_error("cannot write to " + folder.string());
  }
}

void run_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  run({std::istreambuf_iterator<char>(file), {}});
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Runs one fuzz target on its seed inputs and on mutations of them.");
  uint64_t iterations = 100'000;
  std::string corpus;
  std::vector<std::string> files;
  app.add_option("--iterations", iterations, "how many mutated inputs")->capture_default_str();
  app.add_option("--write-corpus", corpus, "only write the seed inputs into this folder, for libFuzzer");
  app.add_option("files", files, "only run these inputs, such as libFuzzer's findings");
  CLI11_PARSE(app, argc, argv);
  if (!corpus.empty()) return write_corpus(corpus), 0;

  for (int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) std::signal(signal, show_input);
  if (!files.empty()) {
    for (const std::string& file : files) run_file(file);
    return 0;
  }
  Mutator mutator(millrace::tests::random_seed());
  std::fflush(stdout);
  run_seed_inputs();
  for (uint64_t done = 0; done < iterations; ++done) run(mutator.next());
  std::printf("%llu mutated inputs\n", static_cast<unsigned long long>(iterations));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "fuzz: %s\n", e.what());
  show_input(SIGABRT);
}
