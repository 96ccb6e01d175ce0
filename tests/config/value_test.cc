#include "config/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::config {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Value, SizesCount1024) {
  EXPECT_EQ(parse_size("64KB"), 65536u);
  EXPECT_EQ(parse_size("20MB"), 20u << 20);
  EXPECT_EQ(parse_size("1 GB"), 1u << 30);
  EXPECT_EQ(parse_size("0B"), 0u);
  EXPECT_EQ(parse_size("7TB"), 7ull << 40);
}

TEST(Value, SizeFaultsNameTheTextAndTheUnits) {
  EXPECT_THAT(parse_size("64").error(), HasSubstr("'64' has no unit; write one of B, KB, MB, GB, TB"));
  EXPECT_THAT(parse_size("64KiB").error(), HasSubstr("unknown unit 'KiB'"));
  EXPECT_THAT(parse_size("64kb").error(), HasSubstr("unknown unit 'kb'"));
  EXPECT_THAT(parse_size("MB").error(), HasSubstr("'MB' is no number with a unit"));
  EXPECT_THAT(parse_size("").error(), HasSubstr("no number"));
  EXPECT_THAT(parse_size("-1MB").error(), HasSubstr("no number"));
  EXPECT_THAT(parse_size("1.5MB").error(), HasSubstr("unknown unit '.5MB'"));
  EXPECT_THAT(parse_size("99999999999999999999B").error(), HasSubstr("too large"));
  EXPECT_THAT(parse_size("9000000000TB").error(), HasSubstr("too large"));
}

TEST(Value, Durations) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("12h"), 12h);
  EXPECT_EQ(parse_duration("7d"), 7 * 24h);
  EXPECT_THAT(parse_duration("30").error(), HasSubstr("'30' has no unit; write one of ms, s, m, h, d"));
  EXPECT_THAT(parse_duration("30sec").error(), HasSubstr("unknown unit 'sec'"));
  EXPECT_THAT(parse_duration("1h30m").error(), HasSubstr("unknown unit 'h30m'"));
  EXPECT_FALSE(parse_duration("-1s").has_value());
}

TEST(Value, FormatsWithTheLargestUnitThatIsExact) {
  EXPECT_EQ(format_size(0), "0B");
  EXPECT_EQ(format_size(1023), "1023B");
  EXPECT_EQ(format_size(1536), "1536B");
  EXPECT_EQ(format_size(16u << 20), "16MB");
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(24h), "1d");
  EXPECT_EQ(format_duration(0ms), "0ms");
}

TEST(Value, IntegersMayBeGroupedAsInCatapult) {
  EXPECT_EQ(parse_integer("4096"), 4096u);
  EXPECT_EQ(parse_integer("4'096"), 4096u);
  EXPECT_EQ(parse_integer("1'000'000"), 1'000'000u);
  EXPECT_EQ(parse_integer("18446744073709551615"), ~uint64_t{0});
  for (auto text : {"", "'", "4'", "'096", "4'09", "4096'000", "1''000", "0x10", "+1", "-1", "1.0", "1,000", " 1"})
    EXPECT_THAT(parse_integer(text).error(), HasSubstr("no whole number")) << text;
  EXPECT_THAT(parse_integer("18446744073709551616").error(), HasSubstr("too large"));
  EXPECT_EQ(format_integer(0), "0");
  EXPECT_EQ(format_integer(999), "999");
  EXPECT_EQ(format_integer(1000), "1'000");
  EXPECT_EQ(format_integer(123456789), "123'456'789");
}

TEST(Value, Booleans) {
  EXPECT_EQ(parse_bool("true"), true);
  EXPECT_EQ(parse_bool("false"), false);
  for (auto text : {"True", "yes", "1", ""}) EXPECT_FALSE(parse_bool(text).has_value()) << text;
}

TEST(Value, Endpoints) {
  EXPECT_EQ(parse_endpoint("127.0.0.1:8080"), (Endpoint{"127.0.0.1", 8080}));
  EXPECT_EQ(parse_endpoint("[0:0:0:0:0:0:0:1]:0"), (Endpoint{"::1", 0}));
  EXPECT_EQ(format_endpoint({"::1", 80}), "[::1]:80");
  for (auto text : {"", "127.0.0.1", ":8080", "127.0.0.1:", "localhost:8080", "::1:8080", "[127.0.0.1]:80", "[::1]",
                    "[]:80", "127.1:80", "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:8'080", "127.0.0.1:8o8o"})
    EXPECT_THAT(parse_endpoint(text).error(), HasSubstr("no address with a port")) << text;
}

TEST(Value, LoopbackIsAllOf127AndItsMappedForm) {
  for (auto text : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"})
    EXPECT_TRUE(parse_endpoint(text)->is_loopback()) << text;
  for (auto text : {"0.0.0.0:1", "128.0.0.1:1", "[::]:1", "[::ffff:10.0.0.1]:1", "[fe80::1]:1"})
    EXPECT_FALSE(parse_endpoint(text)->is_loopback()) << text;
}

TEST(Value, ListsRefuseEmptyItems) {
  EXPECT_THAT(*split_list("a, b ,c"), testing::ElementsAre("a", "b", "c"));
  EXPECT_TRUE(split_list("")->empty());
  for (auto text : {",", "a,", ",a", "a, ,b"}) EXPECT_FALSE(split_list(text).has_value()) << text;
}

TEST(Value, WhatIsShownIsSafeToPrint) {
  EXPECT_EQ(show("a\x1b[31m\xff"), "'a\\x1b[31m\\xff'");
  EXPECT_EQ(show("gr\xc3\xbc\xc3\x9f"), "'gr\xc3\xbc\xc3\x9f'");
  EXPECT_LT(show(std::string(10'000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace millrace::config
