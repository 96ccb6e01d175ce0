// The machine loses power, over and over, under load. Cycles: MILLRACE_FAULT_CYCLES, 200 unless set.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/crash/bus/bus_on_disk.h"
#include "tests/support/faults/fault_file_system.h"
#include "tests/support/random_seed.h"
#include "tests/support/temp_dir.h"

namespace millrace::bus {
namespace {

namespace fs = std::filesystem;

int cycles() {
  const char* wanted = std::getenv("MILLRACE_FAULT_CYCLES");
  return wanted != nullptr ? std::atoi(wanted) : 200;
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return (std::ostringstream() << in.rdbuf()).str();
}

TEST(PowerLoss, TakesNothingThatWasAcknowledged) {
  const uint64_t seed = tests::random_seed();
  std::mt19937_64 random(seed);
  tests::TempDir dir;
  auto disk = std::make_shared<tests::FaultFileSystem>();
  BusOnDisk bus(dir.path() / "data", disk, random());
  for (int cycle = 0; cycle < cycles(); ++cycle) {
    SCOPED_TRACE(fmt::format("cycle {}", cycle));
    auto opened = bus.open();
    ASSERT_TRUE(opened) << to_string(opened.error());
    bus.check();
    for (const std::string& fault : bus.faults()) ADD_FAILURE() << fault;
    if (::testing::Test::HasFailure()) return;
    // The kernel writes the witness page when it likes to: an older one may be what is on disk.
    const std::string old_witness = read(dir.path() / "data/witness");
    disk->cut_power(random() % 150);
    bus.work(60);
    if (random() % 4 == 0 && bus.is_open()) bus.stop();
    disk->cut_power();
    bus.crash();
    disk->restore_power(std::array{0.0, 0.2, 0.5, 0.8, 1.0}[random() % 5]);
    if (random() % 3 == 0) std::ofstream(dir.path() / "data/witness", std::ios::binary) << old_witness;
  }
  auto opened = bus.open();
  ASSERT_TRUE(opened) << to_string(opened.error());
  bus.check();
  for (const std::string& fault : bus.faults()) ADD_FAILURE() << fault;
  EXPECT_TRUE(bus.store().verify());
  std::printf(
      "%d losses of power: %lu commits acknowledged, %lu unknown, %lu torn bytes dropped, %lu segments removed, "
      "%lu bytes compacted\n",
      cycles(), bus.acknowledged(), bus.unknown_commits(), bus.torn_bytes(), bus.removed_segments(),
      bus.compacted_bytes());
  EXPECT_GT(bus.acknowledged(), static_cast<uint64_t>(cycles()));
  if (cycles() >= 50) {
    EXPECT_GT(bus.torn_bytes(), 0u) << "no write was torn";
    EXPECT_GT(bus.removed_segments(), 0u);
    EXPECT_GT(bus.compacted_bytes(), 0u);
  }
}

}  // namespace
}  // namespace millrace::bus
