#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace millrace::cli {
namespace {

using testing::HasSubstr;

tl::expected<CommandLine, int> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "millrace");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

template <typename T>
T command_of(std::vector<const char*> arguments) {
  auto line = parse(std::move(arguments));
  if (!line || !std::holds_alternative<T>(line->command)) {
    ADD_FAILURE() << "not understood";
    return T();
  }
  return std::get<T>(line->command);
}

// What is printed to standard error for a wrong command line, which must end with the code for that.
std::string complaint(std::vector<const char*> arguments) {
  testing::internal::CaptureStderr();
  auto line = parse(std::move(arguments));
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line ? 0 : line.error(), kExitUsage);
  return said;
}

TEST(CommandLine, GlobalOptionsMayStandBehindTheCommand) {
  auto line = parse({"topics", "list", "--json", "--server", "unix:/run/m.sock", "--timeout", "5s"});
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->json);
  EXPECT_EQ(line->server, "unix:/run/m.sock");
  EXPECT_EQ(line->timeout, std::chrono::seconds(5));
}

TEST(CommandLine, TheServerComesFromTheOptionThenTheEnvironmentThenTheDefault) {
  ::unsetenv("MILLRACE_SERVER");
  EXPECT_EQ(parse({"node"})->server, "http://127.0.0.1:8080");
  ::setenv("MILLRACE_SERVER", "http://127.0.0.1:99", 1);
  EXPECT_EQ(parse({"node"})->server, "http://127.0.0.1:99");
  EXPECT_EQ(parse({"--server", "http://127.0.0.1:98", "node"})->server, "http://127.0.0.1:98");
  ::setenv("MILLRACE_SERVER", "", 1);
  EXPECT_THAT(complaint({"node"}), HasSubstr("MILLRACE_SERVER"));
  ::unsetenv("MILLRACE_SERVER");
}

TEST(CommandLine, SettingsAreCutAtTheFirstEqualsSign) {
  auto command = command_of<TopicsCommand>(
      {"topics", "create", "t", "--partitions", "3", "--config", "a=b=c", "--config", "retention.ms=-1"});
  EXPECT_EQ(command.action, TopicsCommand::Action::kCreate);
  EXPECT_EQ(command.partitions, 3u);
  EXPECT_THAT(command.configs, testing::ElementsAre(testing::Pair("a", "b=c"), testing::Pair("retention.ms", "-1")));
}

TEST(CommandLine, FollowingStartsAtTheEndUnlessToldOtherwise) {
  EXPECT_TRUE(std::holds_alternative<StartPosition::Earliest>(command_of<ConsumeCommand>({"consume", "t"}).from.value));
  EXPECT_TRUE(
      std::holds_alternative<StartPosition::Latest>(command_of<ConsumeCommand>({"consume", "t", "-f"}).from.value));
  auto both = command_of<ConsumeCommand>({"consume", "t", "-f", "--from", "earliest"});
  EXPECT_TRUE(std::holds_alternative<StartPosition::Earliest>(both.from.value));
}

TEST(CommandLine, AGroupTakesSeveralTopics) {
  auto consume = command_of<ConsumeCommand>({"consume", "-g", "g", "t", "u", "--instance-id", "i"});
  EXPECT_EQ(consume.group, "g");
  EXPECT_THAT(consume.topics, testing::ElementsAre("t", "u"));
  EXPECT_EQ(consume.instance_id, "i");
  auto reset = command_of<GroupsCommand>({"groups", "reset-offsets", "g", "--topic", "t", "--to", "7", "--dry-run"});
  EXPECT_EQ(reset.action, GroupsCommand::Action::kReset);
  EXPECT_TRUE(reset.dry_run);
  EXPECT_EQ(std::get<StartPosition::Offset>(reset.to.value).offset, 7u);
}

TEST(CommandLine, AGivenIdempotencyPrefixSwitchesLingerOffSoThatBatchesRepeat) {
  EXPECT_TRUE(command_of<ProduceCommand>({"produce", "t"}).linger);
  EXPECT_FALSE(command_of<ProduceCommand>({"produce", "t", "--idempotency-prefix", "x"}).linger);
  auto both = command_of<ProduceCommand>({"produce", "t", "--idempotency-prefix", "x", "--linger", "2s"});
  EXPECT_EQ(both.linger, std::chrono::seconds(2));
}

TEST(CommandLine, TheKeySeparatorMayBeAWordOrAnEscape) {
  EXPECT_EQ(command_of<ProduceCommand>({"produce", "t", "--key-separator", "TAB"}).key_separator, "\t");
  EXPECT_EQ(command_of<ProduceCommand>({"produce", "t", "--key-separator", "\\t"}).key_separator, "\t");
  EXPECT_EQ(command_of<ProduceCommand>({"produce", "t", "--key-separator", "::"}).key_separator, "::");
}

TEST(CommandLine, WhatIsWrongIsNamed) {
  EXPECT_THAT(complaint({}), HasSubstr("millrace: "));
  EXPECT_THAT(complaint({"topics", "make"}), HasSubstr("no command 'make'"));
  EXPECT_THAT(complaint({"topics", "create"}), HasSubstr("TOPIC"));
  EXPECT_THAT(complaint({"topics", "create", "t", "--config", "a"}), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(complaint({"topics", "alter", "t"}), HasSubstr("nothing to change"));
  EXPECT_THAT(complaint({"node", "--timeout", "5"}), HasSubstr("--timeout"));
  EXPECT_THAT(complaint({"produce", "t", "--batch-records", "10001"}), HasSubstr("10001"));
  EXPECT_THAT(complaint({"produce", "t", "--batch-bytes", "16MB"}), HasSubstr("16MB"));
  EXPECT_THAT(complaint({"produce", "t", "--idempotency-prefix", "a b"}), HasSubstr("spaces"));
  EXPECT_THAT(complaint({"consume", "t", "--from", "soon"}), HasSubstr("soon"));
  EXPECT_THAT(complaint({"consume", "t", "--limit", "0"}), HasSubstr("--limit"));
  EXPECT_THAT(complaint({"consume", "t", "u"}), HasSubstr("--group"));
  EXPECT_THAT(complaint({"consume", "-g", "g", "t", "--follow"}), HasSubstr("--follow"));
  EXPECT_THAT(complaint({"consume", "-g", "g", "t", "--from", "12"}), HasSubstr("--from"));
  EXPECT_THAT(complaint({"groups", "reset-offsets", "g"}), HasSubstr("--to"));
  EXPECT_THAT(complaint({"completion", "tcsh"}), HasSubstr("tcsh"));
}

TEST(CommandLine, CompletionKnowsEveryCommandAndItsOptions) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    std::string script = command_of<CompletionCommand>({"completion", shell}).script;
    for (const char* word :
         {"topics alter", "idempotency-prefix", "if-not-exists", "follow", "groups reset-offsets", "metrics"})
      EXPECT_THAT(script, HasSubstr(word)) << shell;
  }
}

TEST(Unescape, KnowsItsEscapesAndNoOthers) {
  EXPECT_EQ(unescape("a\\tb\\n\\\\\\x41\\0"), std::string("a\tb\n\\A\0", 7));
  EXPECT_EQ(unescape("\\q"), std::nullopt);
  EXPECT_EQ(unescape("\\x4"), std::nullopt);
  EXPECT_EQ(unescape("\\"), std::nullopt);
}

}  // namespace
}  // namespace millrace::cli
