#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cli/failure.h"
#include "tests/cli/fake_node.h"
#include "tests/cli/run_cli.h"
#include "tests/support/process.h"

namespace millrace::cli::tests {
namespace {

using millrace::tests::Process;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_value(const std::string& text) {
  return R"({"type":"STRING","data":")" + text + "\"}";
}

class ConsumeTest : public testing::Test {
 protected:
  ConsumeTest() {
    node_.add_topic("t", 2);
    for (int i = 0; i < 5; ++i) node_.add_record("t", 0, text_value("a" + std::to_string(i)));
    for (int i = 0; i < 3; ++i) node_.add_record("t", 1, text_value("b" + std::to_string(i)), text_value("k"));
  }

  std::string out_of(std::vector<std::string> options) {
    std::vector<std::string> arguments = {"consume", "t"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    auto ran = run_cli(node_.url(), arguments);
    EXPECT_EQ(ran.exit, kExitOk) << ran.err;
    return ran.out;
  }

  FakeNode node_;
};

TEST_F(ConsumeTest, PrintsWhatIsThereAndEnds) {
  EXPECT_EQ(out_of({}), "a0\na1\na2\na3\na4\nb0\nb1\nb2\n");
  EXPECT_EQ(out_of({"-p", "1"}), "b0\nb1\nb2\n");
  EXPECT_EQ(out_of({"--limit", "6"}), "a0\na1\na2\na3\na4\nb0\n");
  EXPECT_EQ(out_of({"--from", "latest"}), "");
}

TEST_F(ConsumeTest, StartsWhereItIsTold) {
  EXPECT_EQ(out_of({"-p", "0", "--from", "3"}), "a3\na4\n");
  EXPECT_EQ(out_of({"--from", "0:4,1:2"}), "a4\nb2\n");
  EXPECT_EQ(out_of({"--from", "2026-05-01T12:00:00.002Z"}), "a2\na3\na4\nb2\n");
  EXPECT_EQ(out_of({"--from", "2030-01-01"}), "");
}

TEST_F(ConsumeTest, AnOffsetNeedsItsPartition) {
  auto ran = run_cli(node_.url(), {"consume", "t", "--from", "3"});
  EXPECT_EQ(ran.exit, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("--partition"));
  EXPECT_EQ(run_cli(node_.url(), {"consume", "t", "-p", "2"}).exit, kExitUsage);
}

TEST_F(ConsumeTest, AnOffsetBehindTheEndIsRefused) {
  EXPECT_EQ(out_of({"-p", "0", "--from", "5"}), "");
  for (const auto& where : std::vector<std::vector<std::string>>{{"-p", "0", "--from", "6"}, {"--from", "0:0,1:4"}}) {
    std::vector<std::string> arguments{"consume", "t"};
    arguments.insert(arguments.end(), where.begin(), where.end());
    auto ran = run_cli(node_.url(), arguments);
    EXPECT_EQ(ran.exit, kExitRefused);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("OFFSET_OUT_OF_RANGE"));
  }
}

TEST_F(ConsumeTest, PrintsKeysByFormatAndRecordsAsJsonLines) {
  EXPECT_EQ(out_of({"-p", "1", "-n", "1", "--format", "%k=%s @%p:%o\\n"}), "k=b0 @1:0\n");
  EXPECT_EQ(out_of({"-p", "1", "-n", "1", "--json"}),
            "{\"partition\":1,\"offset\":\"0\",\"timestamp\":\"2026-05-01T12:00:00.000Z\",\"key\":{\"type\":\"STRING\","
            "\"data\":\"k\"},\"value\":{\"type\":\"STRING\",\"data\":\"b0\"},\"headers\":[{\"name\":\"h\",\"value\":"
            "{\"type\":\"STRING\",\"data\":\"x\"}}]}\n");
}

TEST_F(ConsumeTest, ATopicCanBeCopiedThroughJsonLines) {
  node_.add_topic("copy", 2);
  auto read = run_cli(node_.url(), {"consume", "t", "--json"});
  auto written = run_cli(node_.url(), {"produce", "copy", "--json"}, read.out);
  EXPECT_EQ(written.exit, kExitOk) << written.err;
  EXPECT_EQ(node_.values("copy"), node_.values("t"));
}

TEST_F(ConsumeTest, FollowingNamesItsPlaceAndResumesBehindTheLastRecordPrinted) {
  node_.script_stream(
      {{"0:6,1:3", FakeNode::record_event(0, 5, "a5")}, {"0:6,1:4", FakeNode::record_event(1, 3, "b3")}});
  node_.script_stream({});
  node_.script_open_stream({{"0:7,1:4", FakeNode::record_event(0, 6, "a6")}});
  EXPECT_EQ(out_of({"--follow", "--limit", "3"}), "a5\nb3\na6\n");
  auto requests = node_.stream_requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].from, "0:5,1:3");
  EXPECT_EQ(requests[0].last_event_id, "");
  EXPECT_EQ(requests[1].last_event_id, "0:6,1:4");
  EXPECT_EQ(requests[2].last_event_id, "0:6,1:4");
}

TEST_F(ConsumeTest, FollowingOnePartitionPassesOverTheOthers) {
  node_.script_open_stream(
      {{"0:6,1:3", FakeNode::record_event(0, 5, "a5")}, {"0:6,1:4", FakeNode::record_event(1, 3, "b3")}});
  EXPECT_EQ(out_of({"-f", "-p", "1", "--from", "1", "-n", "1"}), "b3\n");
  EXPECT_EQ(node_.stream_requests().at(0).from, "0:5,1:1");
}

TEST_F(ConsumeTest, FollowingGivesUpAfterSoManyConnectionsThatBroughtNothing) {
  for (int i = 0; i < 3; ++i) node_.script_stream({});
  auto ran = run_cli(node_.url(), {"consume", "t", "-f", "--retries", "2"});
  EXPECT_EQ(ran.exit, kExitUnreachable);
  EXPECT_THAT(ran.err, HasSubstr("ended the stream"));
  EXPECT_EQ(node_.stream_requests().size(), 3u);
}

Process::Options with_arguments(std::vector<std::string> arguments) {
  Process::Options options;
  options.arguments = std::move(arguments);
  return options;
}

TEST_F(ConsumeTest, AnInterruptEndsFollowingWithoutAWord) {
  node_.script_open_stream({});
  Process process(MILLRACE_PROGRAM, with_arguments({"--server", node_.url(), "consume", "t", "--follow"}));
  node_.wait_for_stream_requests(1);
  process.send(SIGINT);
  EXPECT_EQ(process.wait(), millrace::tests::exited(kExitInterrupted));
  EXPECT_EQ(process.err(), "");
}

TEST_F(ConsumeTest, AReaderThatGoesEndsFollowingQuietlyThoughNoRecordComes) {
  node_.script_open_stream({{"0:6,1:3", FakeNode::record_event(0, 5, "a5")}});
  Process process("/bin/bash", with_arguments({"-c", std::string(MILLRACE_PROGRAM) + " --server " + node_.url() +
                                                         " consume t -f | head -n 1; echo \"${PIPESTATUS[0]}\""}));
  EXPECT_EQ(process.wait(), millrace::tests::exited(0));
  EXPECT_EQ(process.out(), "a5\n0\n");
  EXPECT_EQ(process.err(), "");
}

}  // namespace
}  // namespace millrace::cli::tests
