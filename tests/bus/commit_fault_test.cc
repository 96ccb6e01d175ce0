// Commits on a disk that is full or fails.
#include "tests/bus/pipeline_fixture.h"
#include "tests/support/faults/fault_file_system.h"

namespace millrace::bus {
namespace {

using tests::FaultFileSystem;
using tests::FileKind;
using tests::Operation;

class CommitFaults : public PipelineFixture {
 protected:
  CommitFaults() { options.lead = false; }

  static constexpr uint64_t kReserve = 1u << 20;
  /// More than what the store writes without looking at the disk.
  static constexpr size_t kLookedAt = 2u << 20;

  /// On a disk that has `free` bytes.
  void open_on_small_disk() {
    open();
    durable->stop();
    durable->reserve_bytes = kReserve;
    durable->free_bytes = [this] { return free.load(); };
    durable->start();
  }
  std::atomic<uint64_t> free{1ull << 30};
};

TEST_F(CommitFaults, ARefusedGroupTellsNothingAndHeals) {
  open_on_small_disk();
  TopicPartition to = create_topic("t");
  Answers answers;
  {
    Gate gate(log(), home);
    free = 0;
    Commit first = put("k", Bytes(kLookedAt, 'v'));
    first.appends.push_back({to, batch(3)});
    first.idempotency = IdempotencyKey{Bytes(32, 'k'), Bytes(32, 'r'), ""};
    answers.submit(log(), 0, std::move(first));
    Commit conflict = put("other", "v");  // True without the first, which it must not be told of.
    conflict.conditions.push_back({Table::kGroups, home.key("k"), kAbsent});
    answers.submit(log(), 1, std::move(conflict));
    gate.open();
    EXPECT_EQ(code_of(put("k", "v")), "DISK_RESERVE");
  }
  using Codes = std::vector<std::pair<int, std::string>>;
  EXPECT_EQ(answers.codes, (Codes{{0, "DISK_RESERVE"}, {1, "DISK_RESERVE"}}));
  EXPECT_FALSE(get("k").has_value());
  EXPECT_EQ(log().view()->partition(to)->high_watermark, 0u);
  EXPECT_FALSE(log().failed());

  free = 1ull << 30;
  Commit again = put("other", "v");
  again.conditions.push_back({Table::kGroups, home.key("k"), kAbsent});
  again.appends.push_back({to, batch(2)});
  again.idempotency = IdempotencyKey{Bytes(32, 'k'), Bytes(32, 'r'), ""};
  auto receipt = log().submit_and_wait(std::move(again));
  ASSERT_TRUE(receipt) << to_string(receipt.error());
  EXPECT_FALSE(receipt->replayed);
  EXPECT_EQ(receipt->appends.front().base_offset, 0u);
  durable->crash();
  durable->start();
  EXPECT_EQ(log().view()->partition(to)->high_watermark, 2u);
  EXPECT_EQ(log().view()->fetch(to, 0, 1u << 20)->size(), 1u);
}

/// The store closes well on a disk below its reserve, though the log could not write what its segments hold.
TEST_F(CommitFaults, ACloseThatIsRefusedLosesNothing) {
  open_on_small_disk();
  TopicPartition to = create_topic("t");
  for (int i = 0; i < 3; ++i) {
    Commit commit(home);
    commit.appends.push_back({to, batch(2)});
    ASSERT_EQ(code_of(std::move(commit)), "");
  }
  free = 0;
  ASSERT_EQ(code_of(put("k", Bytes(kLookedAt, 'v'))), "DISK_RESERVE");
  auto closed = log().close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, "DISK_RESERVE");
  free = 1ull << 30;
  durable->stop();
  durable->start();
  ASSERT_TRUE(durable->store().open_report().clean_stop);
  auto view = log().view();
  EXPECT_EQ(view->partition(to)->high_watermark, 6u);
  EXPECT_EQ(view->fetch(to, 0, 1u << 20)->size(), 3u);
}

TEST_F(CommitFaults, AFullDiskDoesNotKeepTheLogFromBeingRead) {
  open_on_small_disk();
  TopicPartition to = create_topic("t");
  Commit commit(home);
  commit.appends.push_back({to, batch(2)});
  ASSERT_EQ(code_of(std::move(commit)), "");
  durable->crash();
  durable->reserve_bytes = 1ull << 40;
  durable->start();
  EXPECT_EQ(log().view()->fetch(to, 0, 1u << 20)->size(), 1u);
  EXPECT_EQ(code_of(put("k", Bytes(kLookedAt, 'v'))), "DISK_RESERVE");
}

TEST_F(CommitFaults, ANearlyFullDiskIsFreedByDeletingATopic) {
  open_on_small_disk();
  create_topic("t");
  free = durable->reserve_bytes - 1;
  ASSERT_EQ(code_of(put("k", Bytes(kLookedAt, 'v'))), "DISK_RESERVE");
  Commit removal(topic_home("t"));
  removal.state.push_back({Table::kTopics, Bytes(removal.home.prefix()), std::nullopt});
  {
    // In one group with what is refused.
    Gate gate(log(), home);
    Answers answers;
    Commit before = put("k", "v");
    std::vector<std::string> codes;
    auto note = [&](const CommitResult& result) { codes.emplace_back(result ? "" : result.error().code); };
    before.done = note;
    removal.done = note;
    log().submit(std::move(before));
    log().submit(std::move(removal));
    gate.open();
    ASSERT_EQ(code_of(put("k", "v")), "DISK_RESERVE");
    EXPECT_EQ(codes, (std::vector<std::string>{"DISK_RESERVE", ""}));
  }
  EXPECT_FALSE(*log().view()->get(Table::kTopics, topic_home("t").prefix()));
  free = 1ull << 30;
  EXPECT_EQ(code_of(put("k", "v")), "");
}

TEST_F(CommitFaults, AnIndeterminateWriteStopsThePipelineAndARestartTells) {
  for (bool lead : {false, true}) {
    int fatal = 0;
    options.lead = lead;
    options.max_group_bytes = 1000;  // What is behind the failed write is more than its group.
    options.on_fatal = [&](const Error&) { ++fatal; };
    open();
    TopicPartition to = create_topic("t");
    durable->stop();
    auto disk = std::make_shared<FaultFileSystem>();
    durable->file_system = disk;
    durable->start();
    ASSERT_EQ(code_of(put("before", "v")), "");
    Answers answers;
    {
      Gate gate(log(), home);
      disk->fail({.file = FileKind::kWal, .operation = Operation::kSync});
      for (int i = 0; i < 5; ++i) {
        Commit commit = put(std::to_string(i), Bytes(600, 'v'));
        commit.appends.push_back({to, batch(1)});
        answers.submit(log(), i, std::move(commit));
      }
      gate.open();
      std::string last = code_of(put("last", "v"));
      EXPECT_TRUE(last == "COMMIT_UNKNOWN" || last == "STORE_FAILED") << last;
    }
    ASSERT_TRUE(log().failed());
    EXPECT_EQ(code_of(put("k", "v")), "STORE_FAILED");
    EXPECT_EQ(get("before")->value, "v") << "reads go on";
    EXPECT_FALSE(log().close()) << "nothing is left to be written, but not all that was taken is durable";
    ASSERT_EQ(answers.codes.size(), 5u);
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(answers.codes[static_cast<size_t>(i)], (std::pair<int, std::string>{i, "COMMIT_UNKNOWN"}));
    EXPECT_EQ(fatal, 1);
    durable->crash();
    disk->heal();
    durable->start();
    uint64_t rows = 0;
    for (int i = 0; i < 5; ++i) rows += get(std::to_string(i)).has_value() ? 1 : 0;
    EXPECT_EQ(log().view()->partition(to)->high_watermark, rows) << "rows and records are together or not at all";
    uint64_t records = 0;
    const auto batches = log().view()->fetch(to, 0, 1u << 20).value();
    for (const Bytes& batch : batches) records += static_cast<uint64_t>(check_batch(batch)->record_count);
    EXPECT_EQ(records, rows);
    EXPECT_EQ(code_of(put("k", "v")), "");
  }
}

}  // namespace
}  // namespace millrace::bus
