#include "bus/partition_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/support/random_seed.h"

namespace millrace::bus {
namespace {

SegmentRange range(LogClass log_class, uint32_t segment, uint64_t first, uint64_t next, int64_t time = 0) {
  return {log_class, segment, first, next, time, 10 * (next - first)};
}

TEST(PartitionLog, RangesOfOneSegmentGrowAndOthersAreKeptInOrder) {
  PartitionLog log;
  log.add(range(4, 1, 0, 2, 50));
  log.add(range(4, 1, 2, 5, 40));
  EXPECT_EQ(log.ranges(), 1u);
  EXPECT_EQ(log.newest.max_timestamp_ms, 50);
  PartitionLog before = log;
  log.add(range(4, 2, 5, 6));
  log.add(range(5, 1, 6, 9));
  log.add(range(4, 2, 9, 10));  // Back in a segment that is still open: a range of its own.
  EXPECT_EQ(log.ranges(), 4u);
  for (size_t i = 1; i < log.ranges(); ++i) EXPECT_EQ(log.range(i).first_offset, log.range(i - 1).next_offset);
  EXPECT_EQ(log.high_watermark, 10u);
  EXPECT_EQ(log.bytes, 100u);
  EXPECT_EQ(before.ranges(), 1u) << "a copy stays what it was";
  EXPECT_EQ(before.high_watermark, 5u);
}

TEST(PartitionTable, FindsNothingWhereNothingIs) {
  PartitionTable table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(kMaxPartitionId), nullptr);
  table.apply({{5000, PartitionLog{}}});
  EXPECT_NE(table.find(5000), nullptr);
  for (uint32_t id : {4999u, 5001u, 5000u + 16, 5000u + 1024, 0u}) EXPECT_EQ(table.find(id), nullptr) << id;
  table.apply({{5000, std::nullopt}});
  EXPECT_EQ(table.find(5000), nullptr);
}

TEST(PartitionTable, CopiesStayWhatTheyWere) {
  std::mt19937_64 random(tests::random_seed());
  using Model = std::map<uint32_t, uint64_t>;
  PartitionTable table;
  Model model;
  std::vector<std::pair<PartitionTable, Model>> copies;
  for (int step = 0; step < 300; ++step) {
    std::map<uint32_t, std::optional<PartitionLog>> changes;
    for (uint64_t i = random() % 8; i > 0; --i) {
      uint32_t id = static_cast<uint32_t>(random() % 4000);
      changes[id] = std::nullopt;
      model.erase(id);
      if (random() % 3 == 0) continue;
      PartitionLog log;
      log.high_watermark = model[id] = random();
      changes[id] = log;
    }
    table.apply({changes.begin(), changes.end()});
    if (step % 30 == 0) copies.emplace_back(table, model);
  }
  copies.emplace_back(table, model);
  for (const auto& [copy, expected] : copies)
    for (uint32_t id = 0; id < 4000; ++id) {
      const PartitionLog* log = copy.find(id);
      auto known = expected.find(id);
      ASSERT_EQ(log != nullptr, known != expected.end()) << id;
      if (log) {
        ASSERT_EQ(log->high_watermark, known->second) << id;
      }
    }
}

}  // namespace
}  // namespace millrace::bus
