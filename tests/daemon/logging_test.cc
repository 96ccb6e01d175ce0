#include "daemon/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/details/log_msg.h>

#include <nlohmann/json.hpp>

#include "base/thread.h"

namespace millrace::daemon {
namespace {

std::string line(LogStyle style, std::string_view text, spdlog::level::level_enum level = spdlog::level::info) {
  spdlog::log_clock::time_point time{std::chrono::milliseconds(1'700'000'000'123)};
  spdlog::details::log_msg message(time, {}, "test", level, spdlog::string_view_t(text.data(), text.size()));
  spdlog::memory_buf_t out;
  make_formatter(style)->format(message, out);
  return {out.data(), out.size()};
}

class Logging : public testing::Test {
 protected:
  void SetUp() override { name_this_thread("tester"); }
};

TEST_F(Logging, TextHasTimeLevelAndThread) {
  EXPECT_EQ(line(LogStyle::kText, "hello"), "2023-11-14T22:13:20.123Z info    [tester] hello\n");
  EXPECT_EQ(line(LogStyle::kText, "hello", spdlog::level::critical),
            "2023-11-14T22:13:20.123Z fatal   [tester] hello\n");
}

TEST_F(Logging, JournalHasThePriorityInstead) {
  EXPECT_EQ(line(LogStyle::kJournal, "hello"), "<6>[tester] hello\n");
  EXPECT_EQ(line(LogStyle::kJournal, "hello", spdlog::level::err), "<3>[tester] hello\n");
  EXPECT_EQ(line(LogStyle::kJournal, "hello", spdlog::level::trace), "<7>[tester] hello\n");
}

TEST_F(Logging, JsonIsOneObjectALine) {
  auto json = nlohmann::json::parse(line(LogStyle::kJson, "a \"b\" \\ \n\t\x01 \xc3\xbc", spdlog::level::warn));
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["thread"], "tester");
  EXPECT_EQ(json["message"], "a \"b\" \\ \n\t\x01 \xc3\xbc");
}

TEST_F(Logging, AMessageCannotForgeALineNorBreakTheEncoding) {
  for (LogStyle style : {LogStyle::kText, LogStyle::kJournal, LogStyle::kJson}) {
    std::string text = line(style, std::string("x\n<0>forged\r\x1b[2J\xff", 18));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\xff'), std::string::npos);
    EXPECT_THAT(text, testing::HasSubstr("\xef\xbf\xbd"));
  }
}

TEST_F(Logging, OnlyTextDependsOnTheJournal) {
  EXPECT_EQ(style_for(config::LogFormat::kJson), LogStyle::kJson);
  ::setenv("JOURNAL_STREAM", "1:2", 1);
  EXPECT_EQ(style_for(config::LogFormat::kText), LogStyle::kText);
  ::unsetenv("JOURNAL_STREAM");
}

}  // namespace
}  // namespace millrace::daemon
