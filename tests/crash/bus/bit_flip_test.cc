// One flipped bit anywhere in the data directory of a bus: it is refused or found by a read, naming a place, or
// everything is as it was. Never is a log silently shorter. Flips: MILLRACE_FAULT_CYCLES, 300 unless set.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/crash/bus/bus_on_disk.h"
#include "tests/support/random_seed.h"
#include "tests/support/temp_dir.h"

namespace millrace::bus {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return (std::ostringstream() << in.rdbuf()).str();
}
void write(const fs::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// The lock and RocksDB's texts for people are nobody's data.
bool is_data(const fs::path& file) {
  const std::string name = file.filename().string();
  return fs::file_size(file) > 0 && !name.starts_with("LOG") && !name.starts_with("OPTIONS") && name != "LOCK" &&
         name != "lock" && name != "next-wal" && name != "next-wal.new";
}

TEST(BitFlips, AreSaidOrHarmless) {
  const char* wanted = std::getenv("MILLRACE_FAULT_CYCLES");
  const int flips = wanted != nullptr ? std::atoi(wanted) : 300;
  std::mt19937_64 random(tests::random_seed());
  tests::TempDir dir;
  const fs::path pristine = dir.path() / "pristine", data = dir.path() / "data";
  BusOnDisk bus(pristine, nullptr, random());
  // Files of several ages, and a log with synced records at the end.
  for (int life = 0; life < 3; ++life) {
    ASSERT_TRUE(bus.open());
    bus.work(120);
    bus.check();
    if (life < 2) {
      ASSERT_TRUE(bus.stop());
    }
  }
  bus.crash();
  ASSERT_TRUE(bus.faults().empty()) << bus.faults().front();
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(pristine))
    if (entry.is_regular_file() && is_data(entry.path())) files.push_back(entry.path().lexically_relative(pristine));
  std::sort(files.begin(), files.end());

  const std::set<std::string_view> refusals = {"STORE_DAMAGED", "LOG_DAMAGED", "FORMAT_TOO_NEW"};
  int refused = 0, found = 0, harmless = 0;
  bus.move_to(data);
  for (int i = 0; i < flips; ++i) {
    const fs::path& file = files[static_cast<size_t>(i) % files.size()];
    fs::remove_all(data);
    fs::copy(pristine, data, fs::copy_options::recursive);
    std::string content = read(data / file);
    const size_t at = random() % content.size();
    const int bit = static_cast<int>(random() % 8);
    SCOPED_TRACE(fmt::format("{}, byte {} of {}, bit {}", file.string(), at, content.size(), bit));
    content[at] = static_cast<char>(content[at] ^ (1 << bit));
    write(data / file, content);
    if (std::getenv("MILLRACE_FAULT_TRACE") != nullptr)
      std::fprintf(stderr, "flip %d: %s, byte %zu of %zu, bit %d\n", i, file.c_str(), at, content.size(), bit);
    if (auto opened = bus.open(); !opened) {
      EXPECT_TRUE(refusals.contains(opened.error().code)) << to_string(opened.error());
      EXPECT_GT(opened.error().message.size(), 20u);
      ++refused;
      continue;
    }
    if (auto all = bus.read_all(); !all) {
      EXPECT_EQ(all.error().kind, ErrorKind::kCorruption) << to_string(all.error());
      EXPECT_GT(all.error().message.size(), 20u);
      ++found;
    } else {
      bus.check();
      for (const std::string& fault : bus.faults()) ADD_FAILURE() << fault;
      ++harmless;
    }
    bus.crash();
    if (HasFailure()) return;
  }
  std::printf("%d flips over %zu files: %d refused at the start, %d found by a read, %d harmless\n", flips,
              files.size(), refused, found, harmless);
  EXPECT_GT(refused, flips / 20);
}

}  // namespace
}  // namespace millrace::bus
