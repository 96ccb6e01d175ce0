#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/batch.h"
#include "cli/json_text.h"
#include "cli/line_reader.h"
#include "cli/record_format.h"
#include "cli/record_text.h"
#include "cli/remote.h"
#include "cli/start_position.h"
#include "cli/table.h"

// The small pieces between bytes, JSON and what a person reads.
namespace millrace::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(JsonText, CutsWithoutChangingAnything) {
  std::string text = R"( { "a" : 18446744073709551616.10 , "b\u0041" : [1, {"x":"]}\""} , "s"],"c":"}" , "d":{} } )";
  ASSERT_TRUE(is_json(text));
  auto members = json_members(text);
  ASSERT_TRUE(members);
  EXPECT_EQ(json_member(*members, "a"), "18446744073709551616.10");
  EXPECT_EQ(json_member(*members, "bA"), R"([1, {"x":"]}\""} , "s"])");
  EXPECT_EQ(json_member(*members, "c"), R"("}")");
  EXPECT_EQ(json_member(*members, "d"), "{}");
  EXPECT_EQ(json_member(*members, "e"), "");
  EXPECT_THAT(json_elements(json_member(*members, "bA")).value(), ElementsAre("1", R"({"x":"]}\""})", R"("s")"));
  EXPECT_THAT(json_elements("[]").value(), ElementsAre());
  EXPECT_EQ(json_members("[]"), std::nullopt);
  EXPECT_EQ(json_scalar(R"("a\nb")"), "a\nb");
}

TEST(JsonText, QuotesWhatJsonMustNotHold) {
  std::string out;
  append_json_string(out, std::string("a\"\\\n\0\x7fé", 8));
  EXPECT_EQ(out, "\"a\\\"\\\\\\u000a\\u0000\x7fé\"");
  EXPECT_TRUE(is_json(out));
}

TEST(RecordText, ALineIsAValueOrAKeyAndAValue) {
  EXPECT_EQ(**RecordText{}.record_of("say \"hi\""), R"({"value":"say \"hi\""})");
  EXPECT_EQ(**RecordText{}.record_of(""), R"({"value":""})");
  RecordText keyed{.key_separator = "\t"};
  EXPECT_EQ(**keyed.record_of("k\tv\tw"), R"({"key":"k","value":"v\u0009w"})");
  EXPECT_EQ(keyed.record_of("kv").error().code, "NO_KEY_SEPARATOR");
}

TEST(RecordText, BytesThatAreNoTextGoAsBinary) {
  EXPECT_EQ(**RecordText{}.record_of("\xff\xfe\xfd"), R"({"value":{"type":"BINARY","data":"//79"}})");
}

TEST(RecordText, JsonIsPassedOnAsItIs) {
  RecordText json{.json = true};
  EXPECT_EQ(**json.record_of(R"({"key":null, "value":123456789012345678901234567890})"),
            R"({"key":null,"value":123456789012345678901234567890})");
  EXPECT_FALSE(*json.record_of("  \r"));
  for (const char* wrong : {"{", "[]", "1", R"({"a":1} x)"}) EXPECT_EQ(json.record_of(wrong).error().code, "NOT_JSON");
}

TEST(RecordText, WhatConsumePrintsCanBeProduced) {
  const char* printed = R"({"partition":2,"offset":"7","timestamp":"2026-05-01T12:00:00.250Z","key":null,"value":"v"})";
  EXPECT_EQ(**(RecordText{.json = true}.record_of(printed)),
            R"({"partition":2,"timestamp":1777636800250,"key":null,"value":"v"})");
  EXPECT_EQ(**(RecordText{.json = true, .repartition = true}.record_of(printed)),
            R"({"timestamp":1777636800250,"key":null,"value":"v"})");
  EXPECT_EQ(RecordText{.json = true}.record_of(R"({"timestamp":"yesterday"})").error().code, "INVALID_TIMESTAMP");
}

TEST(StartPosition, KnowsItsForms) {
  auto value = [](const char* text) { return StartPosition::parse(text, 1'000'000)->value; };
  EXPECT_EQ(std::get<StartPosition::Offset>(value("42")).offset, 42u);
  EXPECT_EQ(std::get<StartPosition::Time>(value("2026-05-01T14:00:00.25+02:00")).ms, 1'777'636'800'250);
  EXPECT_EQ(std::get<StartPosition::Time>(value("2026-05-01")).ms, 1'777'593'600'000);
  EXPECT_EQ(std::get<StartPosition::Time>(value("1m")).ms, 940'000);
  EXPECT_THAT(std::get<StartPosition::Vector>(value("0:12,3:9")), ElementsAre(std::pair(0u, 12u), std::pair(3u, 9u)));
  for (const char* wrong : {"", "-1", "0:1,0:2", "0:", "2026-02-30", "2026-05-01T25:00:00Z", "2026-05-01T12:00:00", "x",
                            "99999999999999999999"})
    EXPECT_FALSE(StartPosition::parse(wrong, 0)) << wrong;
}

TEST(Batch, IsBoundedByRecordsAndBytesAndKnowsItsLines) {
  Batch batch(3, 10);
  EXPECT_TRUE(batch.fits("a record that is larger than a batch"));
  batch.add("1234", 5);
  EXPECT_TRUE(batch.fits("12345"));
  EXPECT_FALSE(batch.fits("123456"));
  EXPECT_EQ(batch.lines(), "line 5");
  batch.add("12", 8);
  batch.add("1", 9);
  EXPECT_TRUE(batch.full());
  EXPECT_EQ(batch.body(), R"({"records":[1234,12,1]})");
  EXPECT_EQ(batch.lines(), "lines 5 to 9");
  EXPECT_EQ(batch.line_at("/records/1/value"), 8u);
  EXPECT_EQ(batch.line_at("/records/3"), 0u);
  EXPECT_EQ(batch.line_at("/topic"), 0u);
}

class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() { EXPECT_EQ(::pipe(pipe_), 0); }
  ~LineReaderTest() override {
    ::close(pipe_[0]);
    if (pipe_[1] >= 0) ::close(pipe_[1]);
  }
  void put(std::string_view text) { EXPECT_EQ(::write(pipe_[1], text.data(), text.size()), ssize_t(text.size())); }
  void end() {
    ::close(pipe_[1]);
    pipe_[1] = -1;
  }

  Interrupts interrupts_;
  int pipe_[2] = {-1, -1};
};

TEST_F(LineReaderTest, ReadsLinesAndALastOneWithoutEnd) {
  put("one\n\nthr");
  put("ee\nlast");
  end();
  LineReader reader(pipe_[0], 100, interrupts_);
  for (const char* line : {"one", "", "three", "last"}) {
    ASSERT_EQ(reader.next(std::nullopt), LineReader::Event::kLine);
    EXPECT_EQ(reader.line(), line);
  }
  EXPECT_EQ(reader.number(), 4u);
  EXPECT_EQ(reader.next(std::nullopt), LineReader::Event::kEnd);
  EXPECT_EQ(reader.next(std::nullopt), LineReader::Event::kEnd);
}

TEST_F(LineReaderTest, TellsSilence) {
  LineReader reader(pipe_[0], 100, interrupts_);
  put("begun");
  EXPECT_EQ(reader.next(std::chrono::milliseconds(1)), LineReader::Event::kSilence);
  put(" and ended\n");
  EXPECT_EQ(reader.next(std::nullopt), LineReader::Event::kLine);
  EXPECT_EQ(reader.line(), "begun and ended");
}

TEST_F(LineReaderTest, NamesALineThatIsTooLongWithOrWithoutItsEnd) {
  for (const char* text : {"ok\n12345\n", "ok\n12345"}) {
    LineReader reader(pipe_[0], 4, interrupts_);
    put(text);
    ASSERT_EQ(reader.next(std::nullopt), LineReader::Event::kLine);
    auto outcome = reader.next(std::nullopt);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().exit, kExitUsage);
    EXPECT_THAT(outcome.error().text, HasSubstr("line 2 "));
  }
}

TEST_F(LineReaderTest, AnInterruptEndsTheWait) {
  LineReader reader(pipe_[0], 4, interrupts_);
  std::thread other([this] { interrupts_.raise(); });
  auto outcome = reader.next(std::nullopt);
  other.join();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().exit, kExitInterrupted);
}

TEST(RecordFormat, PrintsEveryPart) {
  auto format = RecordFormat::parse("%t/%p/%o/%T/%k/%K/%s/%S/%h/%%\\n");
  ASSERT_TRUE(format);
  std::string out;
  ASSERT_TRUE(format->append(out, "topic", R"({"partition":3,"offset":"9007199254740993",
    "timestamp":"2026-05-01T12:00:00.250Z","key":null,"value":{"type":"BINARY","data":"//79"},
    "headers":[{"name":"a","value":{"type":"STRING","data":"b"}},{"name":"c","value":null}]})"));
  EXPECT_EQ(out, "topic/3/9007199254740993/1777636800250//-1/\xff\xfe\xfd/3/a=b,c=/%\n");
}

TEST(RecordFormat, RefusesALetterItDoesNotKnow) {
  EXPECT_THAT(RecordFormat::parse("%s %q").error().message, HasSubstr("%q"));
  EXPECT_THAT(RecordFormat::parse("100%").error().code, "INVALID_FORMAT");
}

TEST(Table, AlignsAndDefusesControlCharacters) {
  EXPECT_EQ(table({{"A", "B"}, {"long\x1b", "x"}}), "A      B\nlong?  x\n");
}

TEST(Flattened, KeepsNumbersAsTheyCame) {
  EXPECT_EQ(flattened(R"({"a":{"b":18446744073709551616},"c":["x",{}]})"),
            "a.b: 18446744073709551616\nc.0: x\nc.1: {}\n");
  EXPECT_EQ(flattened("null\n"), "null\n");
}

TEST(RetryPolicy, DoublesItsPauseUpToABound) {
  RetryPolicy policy{
      .most = 5, .first_pause = std::chrono::milliseconds(100), .longest_pause = std::chrono::milliseconds(500)};
  std::vector<int64_t> pauses;
  for (int i = 1; i <= 5; ++i) pauses.push_back(policy.pause(i).count());
  EXPECT_THAT(pauses, ElementsAre(100, 200, 400, 500, 500));
}

TEST(Problem, ShowsDetailCodeAndPointerWithoutControlCharacters) {
  http::Client::Response response{
      400, {}, R"({"status":400,"detail":"bad\u001b[1m value","code":"INVALID","retry":"no","pointer":"/records/3"})"};
  auto failure = failure_of(Problem::of(response), true);
  EXPECT_EQ(failure.exit, kExitRefused);
  EXPECT_EQ(failure.text, "bad [1m value (INVALID, at /records/3)");
}

TEST(Problem, AnUnknownOutcomeIsOneOnlyForWhatChangesSomething) {
  http::Client::Response response{503, {}, R"({"detail":"d","code":"C","retry":"unknown"})"};
  EXPECT_EQ(failure_of(Problem::of(response), true).exit, kExitUnknown);
  EXPECT_EQ(failure_of(Problem::of(response), false).exit, kExitRefused);
}

}  // namespace
}  // namespace millrace::cli
