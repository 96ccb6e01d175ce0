#include "api/json.h"

#include <gtest/gtest.h>

#include "api/record_json.h"

namespace millrace::api {
namespace {

TEST(Json, TakesWhatEveryParserReadsAlike) {
  for (std::string_view text :
       {"null", "true", " [1, -2, 3.5e-7] ", R"({"a":{"b":[]},"c":""})", R"("é😀")", R"("\ud83d\ude00")",
        "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1e308", "-0", "0.0",
        R"("\u0000\"\\\/\b\f\n\r\t")", R"({"":1})", R"({"a":1,"A":2})", "\"\x7f\"", "[[[[[[[[[[]]]]]]]]]]"})
    EXPECT_TRUE(parse_json(text)) << text;
}

TEST(Json, RefusesWhatParsersReadDifferently) {
  std::string nul = "\"a";
  nul += '\0';
  nul += '"';
  for (std::string_view text : std::initializer_list<std::string_view>{"",
                                                                       " ",
                                                                       "nul",
                                                                       "tru",
                                                                       "[1,]",
                                                                       "[,1]",
                                                                       "{,}",
                                                                       R"({"a":1,})",
                                                                       R"({"a":1,"a":2})",
                                                                       R"({"x":{"a":1,"a":2}})",
                                                                       R"({"a":1,"\u0061":2})",
                                                                       "01",
                                                                       "+1",
                                                                       "1.",
                                                                       ".5",
                                                                       "1e",
                                                                       "0x10",
                                                                       "NaN",
                                                                       "Infinity",
                                                                       "-",
                                                                       "1e9999",
                                                                       "-1e9999",
                                                                       "18446744073709551616",
                                                                       "-9223372036854775809",
                                                                       "9007199254740993000000",
                                                                       R"("\ud800")",
                                                                       R"("\udc00\ud800")",
                                                                       R"("\ud800x")",
                                                                       "\"\xff\"",
                                                                       "\"\xc0\x80\"",
                                                                       "\"\xed\xa0\x80\"",
                                                                       "\"\xf4\x90\x80\x80\"",
                                                                       "\"a\nb\"",
                                                                       "\"a",
                                                                       R"("\x")",
                                                                       R"("\u12")",
                                                                       "'a'",
                                                                       "{a:1}",
                                                                       R"({"a" 1})",
                                                                       R"({1:2})",
                                                                       "[1 2]",
                                                                       "[1]]",
                                                                       "1 2",
                                                                       "{}{}",
                                                                       "/**/1",
                                                                       "// x\n1",
                                                                       "\xef\xbb\xbf"
                                                                       "1x",
                                                                       nul,
                                                                       "\v1",
                                                                       "\f1"})
    EXPECT_FALSE(parse_json(text)) << text;
}

TEST(Json, DepthAndCountAreBounded) {
  for (size_t depth : {kMaxJsonDepth + 1, size_t{100'000}}) {
    std::string deep(depth, '[');
    auto result = parse_json(deep + std::string(depth, ']'));
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("nested"), std::string::npos) << result.error().message;
    EXPECT_FALSE(parse_json(deep));
  }
  EXPECT_TRUE(parse_json(std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']')));
  std::string many = "[1";
  for (size_t i = 0; i < kMaxJsonValues; ++i) many += ",1";
  EXPECT_FALSE(parse_json(many + "]"));
}

TEST(Json, KeepsTheOrderOfMembers) {
  EXPECT_EQ(parse_json(R"({"z":1,"a":{"y":2,"b":3}})")->dump(), R"({"z":1,"a":{"y":2,"b":3}})");
}

TEST(Json, UnknownFieldsAreNamedWithTheirPlace) {
  auto object = *parse_json(R"({"name":"t","partitons":3})");
  auto fields = Fields::of(object, "/topic", {"name", "partitions"});
  ASSERT_FALSE(fields);
  EXPECT_EQ(fields.error().code, "UNKNOWN_FIELD");
  EXPECT_EQ(fields.error().pointer, "/topic/partitons");
}

TEST(Json, WideIntegersComeAsNumberOrString) {
  EXPECT_EQ(to_integer(*parse_json("9223372036854775807"), "", 0, INT64_MAX), INT64_MAX);
  EXPECT_EQ(to_integer(*parse_json(R"("9223372036854775807")"), "", 0, INT64_MAX), INT64_MAX);
  for (std::string_view bad : {"1.5", R"("1.5")", R"(" 1")", R"("")", "true", "-1", "9223372036854775808"})
    EXPECT_FALSE(to_integer(*parse_json(bad), "", 0, INT64_MAX)) << bad;
}

TEST(Json, TimesGoBothWays) {
  EXPECT_EQ(format_time(1'700'000'000'123), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(format_time(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_FALSE(format_time(INT64_MAX));
  EXPECT_EQ(parse_time("2023-11-14T22:13:20.123Z"), 1'700'000'000'123);
  EXPECT_EQ(parse_time("2023-11-15T00:13:20.123456+02:00"), 1'700'000'000'123);
  for (std::string_view bad : {"", "2023-11-14", "2023-02-30T00:00:00Z", "2023-11-14T22:13:20", "2023-11-14T24:00:00Z",
                               "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20+2:00", "2023-11-14T22:13:20Zx"})
    EXPECT_FALSE(parse_time(bad)) << bad;
}

std::optional<Bytes> bytes(std::string_view json) {
  auto result = to_bytes(*parse_json(json), "");
  EXPECT_TRUE(result) << json;
  return result ? *result : std::nullopt;
}

TEST(RecordJson, ShorthandAndEnvelopesStandForBytes) {
  EXPECT_EQ(bytes("null"), std::nullopt);
  EXPECT_EQ(bytes(R"("text")"), "text");
  EXPECT_EQ(bytes(R"({"b":1,"a":[true]})"), R"({"b":1,"a":[true]})");
  EXPECT_EQ(bytes("7"), "7");
  EXPECT_EQ(bytes(R"({"type":"BINARY","data":"AP8="})"), Bytes("\x00\xff", 2));
  EXPECT_EQ(bytes(R"({"type":"STRING","data":"x"})"), "x");
  EXPECT_EQ(bytes(R"({"type":"JSON","data":"x"})"), R"("x")");
  EXPECT_EQ(bytes(R"({"type":"JSON","data":null})"), "null");
  EXPECT_EQ(bytes(R"({"type":"other","data":1})"), R"({"type":"other","data":1})");
  auto bad = to_bytes(*parse_json(R"({"type":"BINARY","data":"AP8"})"), "/records/0/value");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().pointer, "/records/0/value/data");
}

TEST(RecordJson, BytesComeBackAsWhatTheyAre) {
  auto text = [](std::optional<ByteView> value) {
    std::string out;
    append_value(out, value);
    return out;
  };
  EXPECT_EQ(text(std::nullopt), "null");
  EXPECT_EQ(text(R"({"a": 1})"), R"({"type":"JSON","data":{"a": 1}})");
  EXPECT_EQ(text("{no"), R"({"type":"STRING","data":"{no"})");
  EXPECT_EQ(text("a\"\n\x01"), R"({"type":"STRING","data":"a\"\n\u0001"})");
  EXPECT_EQ(text(ByteView("\x00\xff", 2)), R"({"type":"BINARY","data":"AP8="})");
}

}  // namespace
}  // namespace millrace::api
