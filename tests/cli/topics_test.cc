#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "tests/cli/fake_node.h"
#include "tests/cli/run_cli.h"

namespace millrace::cli::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TopicsTest : public testing::Test {
 protected:
  FakeNode node_;
};

TEST_F(TopicsTest, ListsOverAllPages) {
  for (const char* name : {"a", "b", "c", "d", "e"}) node_.add_topic(name, 2);
  EXPECT_EQ(run_cli(node_.url(), {"topics", "list", "--names"}).out, "a\nb\nc\nd\ne\n");
  EXPECT_EQ(run_cli(node_.url(), {"topics", "list", "--names", "--limit", "3"}).out, "a\nb\nc\n");
  auto shown = run_cli(node_.url(), {"topics", "list", "--limit", "1"});
  EXPECT_EQ(shown.out, "TOPIC  PARTITIONS  CREATED               CONFIGS\na      2           2026-05-01T00:00:00Z\n");
  std::string line = run_cli(node_.url(), {"topics", "list", "--json", "--limit", "1"}).out;
  EXPECT_EQ(nlohmann::json::parse(line)["name"], "a");
}

TEST_F(TopicsTest, CreatesAndRefusesToCreateTwice) {
  auto ran = run_cli(node_.url(), {"topics", "create", "t", "--partitions", "4", "--config", "retention.ms=1"});
  EXPECT_EQ(ran.exit, kExitOk) << ran.err;
  EXPECT_EQ(ran.out, "t created\n");
  EXPECT_THAT(node_.topic_bodies(), ElementsAre(R"({"name":"t","partitions":4,"configs":{"retention.ms":"1"}})"));
  auto again = run_cli(node_.url(), {"topics", "create", "t"});
  EXPECT_EQ(again.exit, kExitRefused);
  EXPECT_EQ(again.err, "millrace: topic 't' exists already (TOPIC_EXISTS)\n");
  EXPECT_EQ(run_cli(node_.url(), {"topics", "create", "t", "--if-not-exists"}).out, "t exists\n");
}

TEST_F(TopicsTest, AltersAndShowsWhereTheRefusalPointsTo) {
  node_.add_topic("t");
  EXPECT_EQ(run_cli(node_.url(), {"topics", "alter", "t", "--config", "a=1", "--unset", "b"}).out, "t altered\n");
  EXPECT_THAT(node_.topic_bodies(), ElementsAre(R"({"configs":{"a":"1","b":null}})"));
  auto refused = run_cli(node_.url(), {"topics", "alter", "t", "--config", "nonsense=1"});
  EXPECT_EQ(refused.exit, kExitRefused);
  EXPECT_EQ(refused.err, "millrace: there is no setting 'nonsense' (UNKNOWN_CONFIG, at /configs/nonsense)\n");
}

TEST_F(TopicsTest, ShowsATopicWithItsPartitionsAndBigNumbersWhole) {
  node_.add_topic("t");
  auto shown = run_cli(node_.url(), {"topics", "show", "t"});
  EXPECT_THAT(shown.out, HasSubstr("name: t\n"));
  EXPECT_THAT(
      shown.out,
      HasSubstr("PARTITION  START  HIGH WATERMARK  BYTES\n0          0      0               9007199254740993\n"));
  auto json = nlohmann::json::parse(run_cli(node_.url(), {"topics", "show", "t", "--json"}).out);
  EXPECT_EQ(json["topic"]["name"], "t");
  EXPECT_EQ(json["partitions"][0]["sizeBytes"], "9007199254740993");
}

TEST_F(TopicsTest, DeletesATopicWhoseNameNeedsEncoding) {
  node_.add_topic("a/b c");
  EXPECT_EQ(run_cli(node_.url(), {"topics", "delete", "a/b c"}).out, "a/b c deleted\n");
  EXPECT_EQ(run_cli(node_.url(), {"topics", "delete", "a/b c"}).exit, kExitRefused);
  EXPECT_EQ(run_cli(node_.url(), {"topics", "delete", "a/b c", "--if-exists"}).exit, kExitOk);
}

TEST_F(TopicsTest, TheNodeAnswersForItself) {
  EXPECT_EQ(run_cli(node_.url(), {"node"}).out,
            "version: 0.1.0\nlog.bytes: 18446744073709551616\nlisten.0: a\nlisten.1: b\n");
  EXPECT_EQ(run_cli(node_.url(), {"node", "metrics"}).out, "up 1\n");
  EXPECT_EQ(run_cli(node_.url(), {"node", "health"}).exit, kExitOk);
  EXPECT_EQ(run_cli(node_.url(), {"node", "ready"}).exit, kExitOk);
  node_.set_ready(false);
  auto ran = run_cli(node_.url(), {"node", "ready", "--json"});
  EXPECT_EQ(ran.exit, kExitRefused);
  EXPECT_EQ(ran.out, "{\"ready\":false,\"why\":\"starting\"}\n");
  EXPECT_EQ(ran.err, "");
}

TEST_F(TopicsTest, AWrongAddressIsAFaultOfTheCommandLine) {
  EXPECT_EQ(run_cli("https://127.0.0.1:1", {"node"}).exit, kExitUsage);
}

}  // namespace
}  // namespace millrace::cli::tests
