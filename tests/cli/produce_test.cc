#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "cli/produce.h"
#include "tests/cli/cutter.h"
#include "tests/cli/fake_node.h"
#include "tests/cli/run_cli.h"

namespace millrace::cli::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Fault = Cutter::Fault;

class ProduceTest : public testing::Test {
 protected:
  ProduceTest() { node_.add_topic("t"); }

  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const auto& append : node_.appends()) all.push_back(append.key);
    return all;
  }

  FakeNode node_;
};

TEST_F(ProduceTest, SendsLinesInOrderAlsoALastOneWithoutEnd) {
  auto ran = run_cli(node_.url(), {"produce", "t", "--batch-records", "2"}, "a\nb\nc");
  EXPECT_EQ(ran.exit, kExitOk) << ran.err;
  EXPECT_THAT(node_.values("t"), ElementsAre("a", "b", "c"));
  EXPECT_EQ(node_.appends().size(), 2u);
  EXPECT_EQ(ran.err, "millrace: 3 records acknowledged in 2 batches\n");
  EXPECT_EQ(ran.out, "");
}

TEST_F(ProduceTest, NothingInIsNothingSent) {
  auto ran = run_cli(node_.url(), {"produce", "t"}, "");
  EXPECT_EQ(ran.exit, kExitOk);
  EXPECT_TRUE(node_.appends().empty());
  EXPECT_THAT(ran.err, HasSubstr("0 records acknowledged in 0 batches"));
}

TEST_F(ProduceTest, BatchesAreBoundedInBytes) {
  auto ran = run_cli(node_.url(), {"produce", "t", "--batch-bytes", "40B"}, "0123456789\n0123456789\n0123456789\n");
  EXPECT_EQ(ran.exit, kExitOk);
  EXPECT_EQ(node_.appends().size(), 3u);
}

TEST_F(ProduceTest, ABatchWhoseAnswerIsLostIsSentAgainUnderItsKeyAndDoublesNothing) {
  Cutter cutter(node_.port(), {Fault::kNone, Fault::kAfter, Fault::kNone, Fault::kBefore});
  auto ran = run_cli(cutter.url(), {"produce", "t", "--batch-records", "1", "--idempotency-prefix", "p"}, "a\nb\nc\n");
  EXPECT_EQ(ran.exit, kExitOk) << ran.err;
  EXPECT_THAT(node_.values("t"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(keys(), ElementsAre("p-0", "p-1", "p-1", "p-2"));
  EXPECT_THAT(ran.err, HasSubstr("3 records acknowledged in 3 batches, 2 sent again"));
  EXPECT_THAT(ran.err, HasSubstr("line 2: trying again"));
}

TEST_F(ProduceTest, ABusyNodeIsAskedAgainWithTheSameKey) {
  node_.refuse_appends(3, {ErrorKind::kUnavailable, "STARTING", "the node starts"});
  auto ran = run_cli(node_.url(), {"produce", "t", "--idempotency-prefix", "p"}, "a\n");
  EXPECT_EQ(ran.exit, kExitOk) << ran.err;
  EXPECT_THAT(node_.values("t"), ElementsAre("a"));
  EXPECT_THAT(keys(), ElementsAre("p-0", "p-0", "p-0", "p-0"));
}

TEST_F(ProduceTest, RepetitionsAreBoundedAndAnEffectThatMayHaveBeenIsSaid) {
  Cutter cutter(node_.port(), {Fault::kAfter, Fault::kBefore, Fault::kBefore});
  auto ran = run_cli(cutter.url(), {"produce", "t", "--retries", "2", "--idempotency-prefix", "p"}, "a\nb\n");
  EXPECT_EQ(ran.exit, kExitUnknown);
  EXPECT_THAT(ran.err, HasSubstr("lines 1 to 2: lost the connection"));
  EXPECT_THAT(ran.err, HasSubstr("idempotency key p-0"));
}

TEST_F(ProduceTest, ANodeThatOnlyEverRefusedHasDoneNothing) {
  node_.refuse_appends(3, {ErrorKind::kUnavailable, "STARTING", "the node starts"});
  auto ran = run_cli(node_.url(), {"produce", "t", "--retries", "2"}, "a\n");
  EXPECT_EQ(ran.exit, kExitRefused);
  EXPECT_THAT(ran.err, HasSubstr("the node starts (STARTING)"));
  EXPECT_TRUE(node_.values("t").empty());
}

TEST_F(ProduceTest, TheSameInputUnderTheSamePrefixAppendsOnce) {
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(
        run_cli(node_.url(), {"produce", "t", "--batch-records", "2", "--idempotency-prefix", "p"}, "a\nb\nc\n").exit,
        0);
  EXPECT_THAT(node_.values("t"), ElementsAre("a", "b", "c"));
}

TEST_F(ProduceTest, ARefusedRecordIsNamedByItsLine) {
  node_.refuse_appends(1, {ErrorKind::kInvalidArgument, "INVALID_RECORD", "no such header", "/records/1/headers"});
  auto ran = run_cli(node_.url(), {"produce", "t", "--json"}, "\n{\"value\":1}\n\n{\"value\":2}\n");
  EXPECT_EQ(ran.exit, kExitRefused);
  EXPECT_THAT(ran.err,
              HasSubstr("line 4: no such header (INVALID_RECORD, at /records/1/headers); nothing of lines 2 to 4"));
  EXPECT_EQ(node_.appends().size(), 1u);
}

TEST_F(ProduceTest, ALineThatIsWrongIsNamedAfterWhatWasBeforeItIsSent) {
  auto ran = run_cli(node_.url(), {"produce", "t", "--key-separator", "TAB"}, "k\tv\nnokey\nk\tw\n");
  EXPECT_EQ(ran.exit, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("line 2 of the input: it has no key separator"));
  EXPECT_THAT(ran.err, HasSubstr("1 record acknowledged in 1 batch\n"));
  EXPECT_THAT(node_.values("t"), ElementsAre("v"));
}

TEST_F(ProduceTest, ALineOverTheBoundIsNamed) {
  auto ran = run_cli(node_.url(), {"produce", "t"}, "a\n" + std::string(kMaxRecordBytes + 1, 'x') + "\nb\n");
  EXPECT_EQ(ran.exit, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("line 2 of the input has more than"));
  EXPECT_THAT(node_.values("t"), ElementsAre("a"));
}

TEST_F(ProduceTest, JsonInMeansASummaryInJsonOut) {
  auto ran = run_cli(node_.url(), {"produce", "t", "--json", "--idempotency-prefix", "p\"q"}, "{\"value\":\"a\"}\n");
  EXPECT_EQ(ran.exit, kExitOk) << ran.err;
  auto summary = nlohmann::json::parse(ran.out);
  EXPECT_EQ(summary["acknowledged"], "1");
  EXPECT_EQ(summary["complete"], true);
  EXPECT_EQ(summary["idempotencyPrefix"], "p\"q");
  EXPECT_EQ(ran.err, "");
}

TEST_F(ProduceTest, AMissingTopicOrNodeIsToldBeforeAnythingIsRead) {
  auto missing = run_cli(node_.url(), {"produce", "none"}, "a\n");
  EXPECT_EQ(missing.exit, kExitRefused);
  EXPECT_EQ(missing.err, "millrace: there is no topic 'none' (TOPIC_NOT_FOUND)\n");
  auto absent = run_cli("unix:/nonexistent/socket", {"produce", "t"}, "a\n");
  EXPECT_EQ(absent.exit, kExitUnreachable);
  EXPECT_EQ(absent.err,
            "millrace: cannot reach unix:/nonexistent/socket: No such file or directory; is millraced running?\n");
}

}  // namespace
}  // namespace millrace::cli::tests
