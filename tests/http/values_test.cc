#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "http/headers.h"
#include "http/params.h"
#include "http/problem.h"
#include "http/target.h"
#include "http/timer_queue.h"

namespace millrace::http {
namespace {

TEST(Headers, AreFoundWithoutCaseAndKeepTheirOrder) {
  Headers headers;
  headers.add("Content-Type", "a");
  headers.add("X", "1");
  headers.add("x", "2");
  EXPECT_EQ(headers.find("content-TYPE"), "a");
  EXPECT_EQ(headers.find("X"), "1");
  EXPECT_EQ(headers.count("x"), 2u);
  EXPECT_EQ(headers.find("Y"), std::nullopt);
  headers.set("X", "3");
  EXPECT_EQ(headers.count("X"), 1u);
  EXPECT_EQ(headers.find("x"), "3");
  EXPECT_EQ(headers.name(0), "Content-Type");
}

TEST(Target, DecodesOnlyWhatIsWellFormed) {
  EXPECT_EQ(percent_decode("a%20b%2Fc"), "a b/c");
  EXPECT_EQ(percent_decode("a+b"), "a+b");
  EXPECT_EQ(percent_decode("a+b", true), "a b");
  EXPECT_EQ(percent_decode("%C3%A4"), "\xC3\xA4");
  for (const char* bad : {"%", "%2", "%zz", "%00", "%0a", "%7f", "%ff", "%c3", "%c0%80", "%ed%a0%80", "%f4%90%80%80"})
    EXPECT_EQ(percent_decode(bad), std::nullopt) << bad;
}

TEST(Target, SplitsTheVerbAtTheLastColon) {
  EXPECT_EQ(split_verb("g:reset").verb, "reset");
  EXPECT_EQ(split_verb("a:b:reset").id, "a:b");
  EXPECT_EQ(split_verb("a%3Ab").id, "a%3Ab");
  EXPECT_EQ(split_verb("plain").verb, "");
}

TEST(Target, NearestNameIsNearOrNothing) {
  EXPECT_EQ(nearest_name("limt", {"limit", "after"}), "limit");
  EXPECT_EQ(nearest_name("maxbytes", {"maxBytes", "wait"}), "maxBytes");
  EXPECT_EQ(nearest_name("colour", {"limit", "after"}), "");
  EXPECT_EQ(nearest_name(std::string(5000, 'x'), {"limit"}), "");
}

TEST(Param, ChecksTypeAndRange) {
  auto limit = Param::integer("limit", "").range(1, 100);
  EXPECT_EQ(limit.check("100").value(), 100);
  for (const char* bad : {"", "0", "101", "1.5", "+1", " 1", "1x", "99999999999999999999"})
    EXPECT_FALSE(limit.check(bad)) << bad;
  EXPECT_EQ(limit.check("101").error().message, "parameter 'limit' is '101', but must be from 1 to 100");

  auto wait = Param::duration("wait", "").range(0, 60'000);
  EXPECT_EQ(wait.check("30s").value(), 30'000);
  EXPECT_EQ(wait.check("1m").value(), 60'000);
  EXPECT_EQ(wait.check("500ms").value(), 500);
  for (const char* bad : {"30", "s", "-1s", "1w", "2m", "1 s", "9999999999999999999s", "999999999999999d"})
    EXPECT_FALSE(wait.check(bad)) << bad;
  EXPECT_NE(wait.check("30").error().message.find("with its unit"), std::string::npos);

  auto size = Param::size("maxBytes", "");
  EXPECT_EQ(size.check("20MB").value(), 20 << 20);
  EXPECT_EQ(size.check("1B").value(), 1);
  for (const char* bad : {"20", "20mb", "20MiB", "9999999TB"}) EXPECT_FALSE(size.check(bad)) << bad;

  auto deep = Param::boolean("deep", "");
  EXPECT_EQ(deep.check("true").value(), 1);
  for (const char* bad : {"True", "1", "yes", ""}) EXPECT_FALSE(deep.check(bad)) << bad;

  auto order = Param::string("order", "").one_of({"up", "down"});
  EXPECT_TRUE(order.check("up"));
  EXPECT_EQ(order.check("left").error().message, "parameter 'order' is 'left', but must be one of up, down");
  EXPECT_FALSE(Param::string("s", "").range(1, 3).check("four"));
}

TEST(Problem, CarriesEveryMember) {
  Response response =
      problem(Error{ErrorKind::kInvalidArgument, "BAD_KEY", "the key \"a\nb\" is bad", "/records/0/key"});
  auto json = nlohmann::json::parse(response.body);
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_EQ(json["type"], "urn:millrace:problem:BAD_KEY");
  EXPECT_EQ(json["status"], 400);
  EXPECT_EQ(json["detail"], "the key \"a\nb\" is bad");
  EXPECT_EQ(json["code"], "BAD_KEY");
  EXPECT_EQ(json["retry"], "no");
  EXPECT_EQ(json["pointer"], "/records/0/key");
  EXPECT_FALSE(json["title"].get<std::string>().empty());
}

TEST(Problem, EveryKindOfErrorHasAStatus) {
  struct Expected {
    ErrorKind kind;
    int status;
    Retry retry;
    bool retry_after;
  };
  for (auto [kind, status, retry, retry_after] : {
           Expected{ErrorKind::kInvalidArgument, 400, Retry::kNo, false},
           Expected{ErrorKind::kNotFound, 404, Retry::kNo, false},
           Expected{ErrorKind::kAlreadyExists, 409, Retry::kNo, false},
           Expected{ErrorKind::kConflict, 409, Retry::kNo, false},
           Expected{ErrorKind::kFenced, 409, Retry::kNo, false},
           Expected{ErrorKind::kExhausted, 503, Retry::kSafe, true},
           Expected{ErrorKind::kUnavailable, 503, Retry::kSafe, true},
           Expected{ErrorKind::kUnknown, 503, Retry::kUnknown, false},
           Expected{ErrorKind::kCorruption, 500, Retry::kNo, false},
           Expected{ErrorKind::kIo, 503, Retry::kSafe, false},
           Expected{ErrorKind::kTimeout, 504, Retry::kUnknown, false},
           Expected{ErrorKind::kCancelled, 503, Retry::kUnknown, false},
           Expected{ErrorKind::kUnsupported, 501, Retry::kNo, false},
           Expected{ErrorKind::kInternal, 500, Retry::kUnknown, false},
       }) {
    EXPECT_EQ(problem_kind(kind).status, status) << to_string(kind);
    EXPECT_EQ(problem_kind(kind).retry, retry) << to_string(kind);
    EXPECT_EQ(problem(Error{kind, "X", "", ""}).headers.find("Retry-After").has_value(), retry_after)
        << to_string(kind);
  }
}

TEST(Problem, QuotesWhatIsNotUtf8) {
  EXPECT_EQ(json_quote("a\"\\\x01\x7f\xC3\xA4\xff"), "\"a\\\"\\\\\\u0001\\u007f\xC3\xA4\xEF\xBF\xBD\"");
  EXPECT_TRUE(nlohmann::json::accept(json_quote(std::string("\xed\xa0\x80\0x", 5))));
}

TEST(TimerQueue, RunsInOrderOfTimeAndForgetsWhatIsCancelled) {
  TimerQueue queue;
  std::string ran;
  queue.add(20, [&] { ran += "b"; });
  queue.add(10, [&] { ran += "a"; });
  auto id = queue.add(15, [&] { ran += "x"; });
  queue.add(20, [&] { ran += "c"; });
  EXPECT_EQ(queue.next_due(), 10);
  EXPECT_TRUE(queue.cancel(id));
  EXPECT_FALSE(queue.cancel(id));
  while (auto fn = queue.take_due(19)) fn();
  EXPECT_EQ(ran, "a");
  while (auto fn = queue.take_due(20)) fn();
  EXPECT_EQ(ran, "abc");
  EXPECT_EQ(queue.next_due(), std::nullopt);
}

}  // namespace
}  // namespace millrace::http
