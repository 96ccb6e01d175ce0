#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/heartbeat.h"
#include "base/histogram.h"
#include "base/uuid.h"

namespace millrace {
namespace {

TEST(Crc32c, KnownVectorsOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, ContinuesFromASeed) { EXPECT_EQ(crc32c("6789", crc32c("12345")), crc32c("123456789")); }

TEST(Bytes, BigEndianKeepsNumericOrder) {
  Bytes small, large;
  append_be<uint32_t>(small, 255);
  append_be<uint32_t>(large, 256);
  EXPECT_LT(small, large);
  EXPECT_EQ(load_be<uint32_t>(large.data()), 256u);
}

TEST(Bytes, PrefixEndIsTheNextPrefix) {
  EXPECT_EQ(prefix_end("ab"), "ac");
  EXPECT_EQ(prefix_end("a\xff"), "b");
  EXPECT_EQ(prefix_end("\xff\xff"), "");
}

TEST(Histogram, QuantilesAreWithinOneBucket) {
  Histogram histogram;
  for (uint64_t i = 1; i <= 1000; ++i) histogram.record(i);
  EXPECT_EQ(histogram.count(), 1000u);
  EXPECT_GE(histogram.quantile(0.5), 500u);
  EXPECT_LE(histogram.quantile(0.5), 640u);
  EXPECT_GE(histogram.quantile(1.0), 1000u);
  histogram.record(~uint64_t{0});
  EXPECT_EQ(histogram.quantile(1.0), ~uint64_t{0});
}

TEST(Uuid, RoundTripsAndRefusesWhatIsNoUuid) {
  Uuid id = Uuid::random();
  EXPECT_EQ(Uuid::parse(id.to_string()), id);
  EXPECT_EQ(id.to_string()[14], '4');
  EXPECT_FALSE(Uuid::parse("").has_value());
  EXPECT_FALSE(Uuid::parse("zzzzzzzz-zzzz-4zzz-8zzz-zzzzzzzzzzzz").has_value());
  EXPECT_FALSE(Uuid::parse(std::string(36, '-')).has_value());
}

TEST(Health, AnIdleLoopAnswersAndAStuckOneAges) {
  ManualClock clock;
  Health health(clock);
  std::shared_ptr<Heartbeat> alive;
  alive = health.watch("alive", [&] { alive->beat(); });
  auto stuck = health.watch("stuck", [] {});
  health.check();
  clock.advance(std::chrono::seconds(5));
  auto states = health.check();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].unanswered_ns, 0);
  EXPECT_EQ(states[1].unanswered_ns, 5'000'000'000);
  stuck->beat();
  EXPECT_EQ(health.check()[1].unanswered_ns, 0);
}

TEST(Health, ALoopThatEndedIsForgotten) {
  ManualClock clock;
  Health health(clock);
  { auto gone = health.watch("gone", [] {}); }
  EXPECT_TRUE(health.check().empty());
}

}  // namespace
}  // namespace millrace
