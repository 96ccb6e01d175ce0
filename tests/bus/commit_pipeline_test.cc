// Groups, bounds, stops and restarts of the durable carrier; what all carriers share is in commit_contract_test.cc.
#include "bus/commit_pipeline.h"

#include "bus/idempotency.h"

#include "tests/bus/pipeline_fixture.h"

namespace millrace::bus {
namespace {

class Pipeline : public PipelineFixture {
 protected:
  Pipeline() { options.lead = false; }

  Commit expecting(Commit commit, ByteView key, Version version) {
    commit.conditions.push_back({Table::kGroups, home.key(key), version});
    return commit;
  }
  Commit fenced(Commit commit, uint64_t epoch) {
    commit.fences.push_back({home.key("lease"), epoch});
    return commit;
  }
  Commit claim(uint64_t epoch) {
    proto::LeaseRow lease;
    lease.set_epoch(epoch);
    Commit commit(home);
    commit.state.push_back({Table::kMeta, home.key("lease"), lease.SerializeAsString()});
    return commit;
  }
  /// Answered, so everything submitted before is answered as well.
  void settle() {
    std::string code;
    while ((code = code_of(Commit(home))) == "COMMIT_QUEUE_FULL") std::this_thread::yield();
    ASSERT_EQ(code, "");
  }
};

TEST_F(Pipeline, ACommitSeesItsPredecessorsInTheSameGroup) {
  open();
  const uint64_t groups = log().stats().groups;
  Gate gate(log(), home);
  Answers answers;
  answers.submit(log(), 0, expecting(put("k", "0"), "k", kAbsent));
  answers.submit(log(), 1, expecting(put("k", "1"), "k", kAbsent));
  answers.submit(log(), 2, put("other", "2"));
  gate.open();
  settle();
  using Codes = std::vector<std::pair<int, std::string>>;
  EXPECT_EQ(answers.codes, (Codes{{0, ""}, {1, "CONDITION_FAILED"}, {2, ""}}));
  EXPECT_EQ(get("k")->value, "0");
  EXPECT_EQ(log().stats().groups - groups, 1u);
}

TEST_F(Pipeline, ARaisedEpochFencesTheRestOfItsGroupAndLaterGroups) {
  open();
  ASSERT_EQ(code_of(claim(1)), "");
  ASSERT_EQ(code_of(fenced(put("k", "1"), 1)), "") << "now the epoch is cached";
  Gate gate(log(), home);
  Answers answers;
  answers.submit(log(), 0, fenced(put("k", "2"), 1));
  answers.submit(log(), 1, claim(2));
  answers.submit(log(), 2, fenced(put("k", "3"), 1));
  answers.submit(log(), 3, fenced(put("k", "4"), 2));
  gate.open();
  settle();
  using Codes = std::vector<std::pair<int, std::string>>;
  EXPECT_EQ(answers.codes, (Codes{{0, ""}, {1, ""}, {2, "FENCED"}, {3, ""}}));
  EXPECT_EQ(code_of(fenced(put("k", "5"), 1)), "FENCED");
  EXPECT_EQ(code_of(fenced(put("k", "6"), 2)), "");
  EXPECT_EQ(code_of(claim(3)), "");
  EXPECT_EQ(code_of(fenced(put("k", "7"), 2)), "FENCED");
  durable->stop();
  durable->start();
  EXPECT_EQ(code_of(fenced(put("k", "8"), 2)), "FENCED");
  EXPECT_EQ(code_of(fenced(put("k", "9"), 3)), "");
}

TEST_F(Pipeline, AnswersComeInRingOrderAlsoFromManyThreads) {
  options.lead = true;
  open();
  constexpr int kThreads = 4, kCommits = 200;
  std::vector<std::vector<int>> order(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCommits; ++i) {
        Commit commit = put("k", "v");
        if (i % 3 == 1) commit = expecting(std::move(commit), "k", kAbsent);
        commit.done = [&, t, i](const CommitResult&) { order[static_cast<size_t>(t)].push_back(i); };
        log().submit(std::move(commit));
      }
    });
  for (auto& thread : threads) thread.join();
  settle();
  std::vector<int> expected(kCommits);
  for (int i = 0; i < kCommits; ++i) expected[static_cast<size_t>(i)] = i;
  for (const auto& of_thread : order) EXPECT_EQ(of_thread, expected);
}

TEST_F(Pipeline, OneViewShowsTheRowAndTheRecordOfAnAnsweredCommit) {
  open();
  TopicPartition to = create_topic("t");
  std::promise<std::pair<bool, uint64_t>> seen;
  Commit commit = put("k", "v");
  commit.appends.push_back({to, batch(2)});
  commit.done = [&](const CommitResult&) {
    auto view = log().view();
    seen.set_value({(*view->get(Table::kGroups, home.key("k"))).has_value(), view->partition(to)->high_watermark});
  };
  log().submit(std::move(commit));
  EXPECT_EQ(seen.get_future().get(), (std::pair<bool, uint64_t>{true, 2}));
}

TEST_F(Pipeline, SlotsAreBoundedAndComeBack) {
  options.slot_count = 4;
  open();
  Gate gate(log(), home);  // Its own slot is free when its answer returns.
  Answers answers;
  for (int i = 0; i < 3; ++i) answers.submit(log(), i, put("k", "v"));
  EXPECT_TRUE(answers.codes.empty());
  answers.submit(log(), 3, put("k", "v"));
  using Codes = std::vector<std::pair<int, std::string>>;
  EXPECT_EQ(answers.codes, (Codes{{3, "COMMIT_QUEUE_FULL"}}));
  gate.open();
  settle();
  EXPECT_EQ(answers.codes.size(), 4u);
  EXPECT_EQ(code_of(put("k", "v")), "");
}

TEST_F(Pipeline, WaitingBytesAreBoundedAndComeBack) {
  options.max_waiting_bytes = 100'000;
  open();
  Gate gate(log(), home);
  Answers answers;
  answers.submit(log(), 0, put("k", Bytes(60'000, 'v')));
  answers.submit(log(), 1, put("k", Bytes(60'000, 'v')));
  answers.submit(log(), 2, put("k", Bytes(1'000, 'v')));
  gate.open();
  settle();
  using Codes = std::vector<std::pair<int, std::string>>;
  EXPECT_EQ(answers.codes, (Codes{{1, "COMMIT_QUEUE_FULL"}, {0, ""}, {2, ""}}));
  EXPECT_EQ(code_of(put("k", Bytes(60'000, 'v'))), "");
}

TEST_F(Pipeline, AfterCloseCommitsAreRefusedAndWatchesWake) {
  open();
  TopicPartition at = create_topic("t");
  ASSERT_TRUE(log().close());
  ASSERT_TRUE(log().close());
  EXPECT_EQ(code_of(put("k", "v")), "STOPPING");
  Answers answers;
  answers.submit(log(), 0, put("k", "v"));
  ASSERT_EQ(answers.codes.size(), 1u);
  EXPECT_EQ(answers.codes.front().second, "STOPPING");
  bool woken = false;
  auto watch = log().watch({{at, 5}}, [&] { woken = true; });
  EXPECT_TRUE(woken);
}

TEST_F(Pipeline, ClosingCarriesWhatWasTaken) {
  open();
  Gate gate(log(), home);
  Answers answers;
  for (int i = 0; i < 10; ++i) answers.submit(log(), i, put(std::to_string(i), "v"));
  std::thread closing([&] { EXPECT_TRUE(log().close()); });
  gate.open();
  closing.join();
  ASSERT_EQ(answers.codes.size(), 10u);
  for (const auto& [number, code] : answers.codes) EXPECT_EQ(code, "");
}

TEST_F(Pipeline, ClosingEndsAlthoughACallerLeads) {
  options.lead = true;
  open();
  for (int round = 0; round < 20; ++round) {
    std::thread caller([&] {
      while (code_of(put("k", "v")) != "STOPPING") {
      }
    });
    EXPECT_TRUE(log().close());
    caller.join();
    durable->stop();
    durable->start();
  }
}

TEST_F(Pipeline, IdempotencyKeysLive24HoursAcrossBucketsAndRestarts) {
  open();
  clock.step_wall(
      std::chrono::milliseconds(IdempotencyKeys::kBucketMs - clock.wall_ms() % IdempotencyKeys::kBucketMs - 1));
  auto use = [&](char request) {
    Commit commit = put("k", "v");
    commit.idempotency = IdempotencyKey{Bytes(32, 'k'), Bytes(32, request), "answer"};
    return log().submit_and_wait(std::move(commit));
  };
  auto other = [&](char key) {
    Commit commit(home);
    commit.idempotency = IdempotencyKey{Bytes(32, key), Bytes(32, 'r'), ""};
    EXPECT_EQ(code_of(std::move(commit)), "");
  };
  auto first = use('a');  // In the last millisecond of its bucket.
  ASSERT_TRUE(first);
  for (char key : {'1', '2'}) {
    clock.advance(std::chrono::hours(12));
    other(key);  // Each opens a bucket, and may drop one.
    durable->stop();
    durable->start();
    auto again = use('a');
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->replayed);
    EXPECT_EQ(again->version, first->version);
    EXPECT_EQ(use('b').error().code, "IDEMPOTENCY_KEY_REUSED");
  }
  durable->crash();
  durable->start();
  EXPECT_TRUE(use('a')->replayed) << "24 h exactly";
  clock.advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(use('b')->replayed);
  EXPECT_TRUE(use('b')->replayed);
  EXPECT_EQ(use('a').error().code, "IDEMPOTENCY_KEY_REUSED");
}

TEST_F(Pipeline, SmallBatchesOfOneGroupAreJoinedAndAnsweredAsIfTheyWereNot) {
  open();
  const TopicPartition to = create_topic("t");
  Gate gate(log(), home);
  std::vector<uint64_t> offsets;
  for (int i = 0; i < 100; ++i) {
    Commit commit(home);
    commit.appends.push_back({to, batch(1)});
    commit.done = [&](CommitResult result) { offsets.push_back(result.value().appends[0].base_offset); };
    log().submit(std::move(commit));
  }
  gate.open();
  settle();
  ASSERT_EQ(offsets.size(), 100u);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(offsets[i], i);
  const auto before = log().view()->fetch(to, 0, 1u << 20).value();
  EXPECT_LT(before.size(), 10u);
  const auto bytes = log().view()->partition(to)->bytes;
  durable->crash();
  durable->start();
  EXPECT_EQ(log().view()->fetch(to, 0, 1u << 20).value(), before);
  EXPECT_EQ(log().view()->partition(to)->bytes, bytes) << "counted as it was written";
  EXPECT_EQ(log().view()->partition(to)->high_watermark, 100u);
}

TEST_F(Pipeline, AKeyUsedTwiceInOneGroupIsWrittenOnce) {
  open();
  TopicPartition to = create_topic("t");
  Gate gate(log(), home);
  std::vector<CommitResult> results;
  for (int i = 0; i < 2; ++i) {
    Commit commit(home);
    commit.appends.push_back({to, batch(1)});
    commit.idempotency = IdempotencyKey{Bytes(32, 'k'), Bytes(32, 'r'), "answer"};
    commit.done = [&](CommitResult result) { results.push_back(std::move(result)); };
    log().submit(std::move(commit));
  }
  gate.open();
  settle();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_FALSE(results[0]->replayed);
  EXPECT_TRUE(results[1]->replayed);
  EXPECT_EQ(results[1]->version, results[0]->version);
  EXPECT_EQ(log().view()->partition(to)->high_watermark, 1u);
}

}  // namespace
}  // namespace millrace::bus
