// Whichever operation on a file fails, and however: the node says so and takes nothing more, and what it acknowledged
// is there when the disk is well again. Every fifth operation of a short load fails, beginning elsewhere each time;
// MILLRACE_FAULT_STEP=1 takes them all.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <cstdlib>

#include "tests/crash/bus/bus_on_disk.h"
#include "tests/support/faults/fault_file_system.h"
#include "tests/support/random_seed.h"
#include "tests/support/temp_dir.h"

namespace millrace::bus {
namespace {

using tests::Failure;
using tests::FaultFileSystem;

class FailedOperation : public ::testing::TestWithParam<std::tuple<Failure, bool>> {
 protected:
  static constexpr int kCommits = 30;

  void expect_no_faults(const BusOnDisk& bus) {
    for (const std::string& fault : bus.faults()) ADD_FAILURE() << fault;
  }
  /// A node that does not say it failed takes commits.
  void expect_honest(BusOnDisk& bus) {
    Commit commit(*Home::make(HomeKind::kGroup, "probe"));
    commit.state.push_back({store::Table::kGroups, commit.home.key("x"), "y"});
    auto answer = bus.pipeline().submit_and_wait(std::move(commit));
    EXPECT_EQ(answer.has_value(), !bus.pipeline().failed());
    if (!answer) {
      EXPECT_TRUE(answer.error().code == "STORE_FAILED" || answer.error().code == "COMMIT_UNKNOWN")
          << to_string(answer.error());
    }
  }
  /// A life of the bus in which operation `k` fails, a look at it, and a life on a disk that is well.
  void live(uint64_t seed, uint64_t k, Failure failure, bool once) {
    tests::TempDir dir;
    auto disk = std::make_shared<FaultFileSystem>();
    BusOnDisk bus(dir.path() / "data", disk, seed);
    FaultFileSystem::Rule rule;
    rule.skip = k;
    rule.failure = failure;
    if (once) rule.count = 1;
    disk->fail(rule);
    if (auto opened = bus.open()) {
      bus.work(kCommits);
      bus.stop();
      if (auto again = bus.open()) {
        bus.check();
        bus.work(kCommits);
        expect_honest(bus);
        bus.crash();
      }
    }
    disk->heal();
    auto opened = bus.open();
    ASSERT_TRUE(opened) << to_string(opened.error());
    bus.check();
    expect_no_faults(bus);
    expect_honest(bus);
    bus.work(5);
    bus.check();
    expect_no_faults(bus);
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, FailedOperation,
                         ::testing::Combine(::testing::Values(Failure::kIo, Failure::kNoSpace, Failure::kShortWrite),
                                            ::testing::Bool()));

TEST_P(FailedOperation, LosesNothingAndIsSaid) {
  const auto [failure, once] = GetParam();
  const uint64_t seed = tests::random_seed();
  uint64_t operations = 0;
  {
    tests::TempDir dir;
    auto disk = std::make_shared<FaultFileSystem>();
    BusOnDisk bus(dir.path() / "data", disk, seed);
    for (int life = 0; life < 2; ++life) {
      ASSERT_TRUE(bus.open());
      bus.work(kCommits);
      if (life == 0) bus.stop();
    }
    operations = disk->operations();
  }
  const char* wanted = std::getenv("MILLRACE_FAULT_STEP");
  const uint64_t step = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 5;
  for (uint64_t k = seed % step; k < operations && !HasFailure(); k += step) {
    SCOPED_TRACE(fmt::format("operation {} of {}", k, operations));
    live(seed, k, failure, once);
  }
  std::printf("%lu operations, every %lu-th failed\n", operations, step);
}

}  // namespace
}  // namespace millrace::bus
