// A disk that fails, that is full, and a machine that loses power.
#include <fmt/format.h>

#include <array>
#include <random>

#include "tests/store/store_fixture.h"
#include "tests/support/faults/fault_file_system.h"
#include "tests/support/random_seed.h"

namespace millrace::store {
namespace {

using tests::Failure;
using tests::FaultFileSystem;
using tests::FileKind;
using tests::Operation;

class Faults : public StoreFixture {
 protected:
  Options faulty() const {
    Options faulty = options();
    faulty.file_system = disk_;
    return faulty;
  }

  /// What a client knows: rows written with success, and rows whose write was answered "unknown".
  struct History {
    int acknowledged = 0;  ///< rows [0, acknowledged)
    bool unknown = false;  ///< row `acknowledged` may be there
  };
  /// Writes rows until one fails or there are `rows`; flushes on the way, because the bound of the log is small.
  History work(int rows) {
    History history;
    Options small = faulty();
    small.max_wal_rows = 16;
    small.prepared_wal_bytes = prepared_wal_bytes_;
    auto store = Store::open(small);
    if (!store) return history;
    for (; history.acknowledged < rows; ++history.acknowledged) {
      Status written = put(**store, history.acknowledged);
      if (written) continue;
      EXPECT_EQ(written.error().code, "STORE_UNKNOWN") << written.error().message;
      EXPECT_TRUE((*store)->failed());
      history.unknown = true;
      break;
    }
    if (!history.unknown) (*store)->close();  // Its failure takes nothing back.
    return history;
  }
  /// On a disk that is well again.
  void expect_kept(const History& history) {
    auto store = must_open();
    for (int i = 0; i < history.acknowledged; ++i) EXPECT_TRUE(has(*store, i)) << "row " << i << " was acknowledged";
    bool more = history.unknown && has(*store, history.acknowledged);
    expect_exactly(*store, history.acknowledged + (more ? 1 : 0));
    fill(*store, history.acknowledged, history.acknowledged + 2);
    EXPECT_TRUE(store->verify());
  }

  /// Positions within the operations of work(), spread over all of them.
  std::vector<uint64_t> sample(std::mt19937_64& random, uint64_t count) {
    if (operations_ == 0) {
      EXPECT_EQ(work(kRows).acknowledged, kRows);
      operations_ = disk_->operations();
      EXPECT_GT(operations_, 100u);
    }
    std::vector<uint64_t> all;
    uint64_t width = operations_ / count;
    for (uint64_t i = 0; i < count; ++i) all.push_back(i * width + random() % width);
    return all;
  }

  void expect_survival(FaultFileSystem::Rule rule) {
    if (HasFailure()) return;
    SCOPED_TRACE(
        fmt::format("failure {} at operation {} of {}", static_cast<int>(rule.failure), rule.skip, operations_));
    std::filesystem::remove_all(data());
    uint64_t failures = disk_->failures();
    disk_->fail(rule);
    History history = work(kRows);
    // Where the background has had less to do this time, the last ones may not be reached.
    EXPECT_TRUE(disk_->failures() > failures || rule.skip > operations_ * 8 / 10);
    disk_->heal();
    expect_kept(history);
  }

  static constexpr int kRows = 40;
  uint64_t prepared_wal_bytes_ = 0;
  uint64_t operations_ = 0;
  std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>();
};

TEST_F(Faults, AFailedSyncIsUnknownAndTheLastWordUntilARestart) {
  {
    auto store = must_open(faulty());
    fill(*store, 0, 10);
    disk_->fail({.file = FileKind::kWal, .operation = Operation::kSync, .count = 1});
    Status written = put(*store, 10);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().kind, ErrorKind::kUnknown);
    EXPECT_EQ(written.error().code, "STORE_UNKNOWN");
    EXPECT_NE(written.error().message.find("injected"), std::string::npos) << written.error().message;
    EXPECT_TRUE(store->failed());
    // The disk is well again, but nobody knows what it holds.
    EXPECT_EQ(put(*store, 11).error().code, "STORE_UNKNOWN");
    EXPECT_EQ(put(*store, 11, Durability::kAsync).error().code, "STORE_UNKNOWN");
    EXPECT_EQ(store->checkpoint(root() / "copy").error().code, "STORE_UNKNOWN");
    EXPECT_EQ(store->close().error().code, "STORE_UNKNOWN");
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(has(*store, i)) << "reads go on";
  }
  auto store = must_open(faulty());
  EXPECT_FALSE(store->failed());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(has(*store, i));
  expect_exactly(*store, has(*store, 10) ? 11 : 10);
}

TEST_F(Faults, EveryKindOfFailedLogWriteIsUnknownAndSurvived) {
  for (Failure failure : {Failure::kIo, Failure::kNoSpace, Failure::kShortWrite}) {
    for (bool memtable_is_empty : {false, true}) {
      SCOPED_TRACE(fmt::format("failure {}, empty memtable {}", static_cast<int>(failure), memtable_is_empty));
      std::filesystem::remove_all(data());
      {
        auto store = must_open(faulty());
        fill(*store, 0, 5);
        if (memtable_is_empty) {
          ASSERT_TRUE(store->close());
          store.reset();
          store = must_open(faulty());
        }
        disk_->fail({.file = FileKind::kWal, .operation = Operation::kAppend, .count = 1, .failure = failure});
        EXPECT_EQ(put(*store, 5).error().code, "STORE_UNKNOWN");
        EXPECT_EQ(put(*store, 6).error().code, "STORE_UNKNOWN");
        EXPECT_TRUE(store->failed());
        disk_->heal();
      }
      auto store = must_open(faulty());
      expect_exactly(*store, has(*store, 5) ? 6 : 5);
    }
  }
}

TEST_F(Faults, AFailedFlushIsLatchedAndLosesNothing) {
  {
    Options small = faulty();
    small.max_wal_rows = 10;
    auto store = must_open(small);
    disk_->fail({.file = FileKind::kTable, .operation = Operation::kSync});
    int written = 0;
    // The flush runs in the background: some writes may still succeed.
    while (put(*store, written)) ++written;
    EXPECT_TRUE(store->failed());
    EXPECT_FALSE(store->close());
    store.reset();
    disk_->heal();
    store = must_open(faulty());
    for (int i = 0; i < written; ++i) EXPECT_TRUE(has(*store, i)) << i;
  }
}

/// With logs that grow, and with prepared ones: small enough that some outgrow it.
class FaultsOfLogs : public Faults, public ::testing::WithParamInterface<uint64_t> {
 protected:
  FaultsOfLogs() { prepared_wal_bytes_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(PreparedBytes, FaultsOfLogs, ::testing::Values(0, 2048));

// From creation to the close. A run takes a sample of the operations, another one each time.
TEST_P(FaultsOfLogs, WhereverTheDiskBeginsToFailWhatWasAcknowledgedIsThereLater) {
  std::mt19937_64 random(tests::random_seed());
  for (Failure failure : {Failure::kIo, Failure::kNoSpace, Failure::kShortWrite})
    for (uint64_t k : sample(random, 20)) expect_survival({.skip = k, .failure = failure});
}

// One operation fails and the next one succeeds: nothing may be tried again as if nothing had happened.
TEST_P(FaultsOfLogs, WhateverSingleOperationFailsWhatWasAcknowledgedIsThereLater) {
  std::mt19937_64 random(tests::random_seed());
  for (Failure failure : {Failure::kIo, Failure::kNoSpace})
    for (uint64_t k : sample(random, 20)) expect_survival({.skip = k, .count = 1, .failure = failure});
}

TEST_P(FaultsOfLogs, ALossOfPowerTakesOnlyWhatWasNotAcknowledged) {
  std::mt19937_64 random(tests::random_seed());
  for (uint64_t k : sample(random, 40)) {
    double kept = std::array{0.0, 0.5, 1.0}[random() % 3];
    SCOPED_TRACE(fmt::format("power lost at operation {} of {}, {} of the unsynced bytes kept", k, operations_, kept));
    std::filesystem::remove_all(data());
    disk_->cut_power(k);
    History history = work(kRows);
    disk_->restore_power(kept);
    expect_kept(history);
    if (HasFailure()) return;
  }
}

// The pages of a write that is not synced reach the disk in any order.
TEST_F(Faults, ALossOfPowerLeavesAWriteToAPreparedLogWholeOrNotAtAll) {
  for (double kept : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    SCOPED_TRACE(kept);
    std::filesystem::remove_all(data());
    Options prepared = faulty();
    prepared.prepared_wal_bytes = 1 << 20;
    {
      auto store = must_open(prepared);
      fill(*store, 0, 20);
      disk_->fail({.file = FileKind::kWal, .operation = Operation::kSync, .count = 1});
      WriteBatch large;
      for (int i = 0; i < 10; ++i) large.put(Table::kLog, key_of(i), std::string(20'000, static_cast<char>('a' + i)));
      EXPECT_EQ(store->write(large, Durability::kSync).error().code, "STORE_UNKNOWN");
      disk_->cut_power();
    }
    disk_->heal();
    disk_->restore_power(kept);
    auto store = must_open(prepared);
    expect_exactly(*store, 20);
    int there = 0;
    for (int i = 0; i < 10; ++i) there += store->snapshot()->get(Table::kLog, key_of(i)).value().has_value();
    EXPECT_EQ(there, kept == 1.0 ? 10 : 0);
    EXPECT_EQ(store->open_report().torn_bytes > 0, kept > 0.0 && kept < 1.0);
    fill(*store, 20, 30);
    store.reset();
    expect_exactly(*must_open(prepared), 30);
  }
}

TEST_F(Faults, ALossOfPowerMayTakeAsynchronousWritesFromTheEnd) {
  for (double kept : {0.0, 0.3, 1.0}) {
    SCOPED_TRACE(kept);
    std::filesystem::remove_all(data());
    {
      auto store = must_open(faulty());
      fill(*store, 0, 20);
      fill(*store, 20, 40, Durability::kAsync);
      disk_->cut_power();
      EXPECT_FALSE(put(*store, 40, Durability::kAsync));
    }
    disk_->restore_power(kept);
    auto store = must_open(faulty());
    int there = 0;
    while (has(*store, there)) ++there;
    EXPECT_GE(there, 20);
    EXPECT_LE(there, 40);
    if (kept != 0.3) {
      EXPECT_EQ(there, kept == 0.0 ? 20 : 40);
    }
    expect_exactly(*store, there);
  }
}

TEST_F(Faults, BelowTheReserveWritesAreRefusedAndNothingIsWritten) {
  Options reserving = faulty();
  reserving.reserve_bytes = 100 << 20;
  auto store = must_open(reserving);
  fill(*store, 0, 5);
  uint64_t sequence = store->last_sequence(), operations = disk_->operations();
  free_bytes_ = (100 << 20) - 1;
  WriteBatch batch;  // More than a megabyte: then the disk is looked at.
  for (int i = 5; i < 20; ++i) batch.put(Table::kTopics, key_of(i), std::string(100'000, 'x'));
  Status refused = store->write(batch, Durability::kSync);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "DISK_RESERVE");
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(put(*store, 5).error().code, "DISK_RESERVE") << "small ones too";
  EXPECT_FALSE(store->failed());
  EXPECT_EQ(store->last_sequence(), sequence);
  EXPECT_EQ(disk_->operations(), operations);
  EXPECT_EQ(store->stats().free_bytes, free_bytes_);
  expect_exactly(*store, 5);

  free_bytes_ = 200 << 20;
  fill(*store, 5, 10);
  // Room, but not for this: 200 MiB free, 100 MiB kept back.
  free_bytes_ = (100 << 20) + 1000;
  EXPECT_EQ(store->write(batch, Durability::kSync).error().code, "DISK_RESERVE");
  free_bytes_ = uint64_t{1} << 40;
  fill(*store, 10, 12);
  expect_exactly(*store, 12);
}

TEST_F(Faults, AFullDiskOpensForReadingAndHealsWhenFreed) {
  {
    auto store = must_open();
    fill(*store, 0, 20);
  }
  free_bytes_ = 200 << 20;  // Below the reserve, yet enough for what recovery writes.
  auto store = must_open();
  expect_exactly(*store, 20);
  EXPECT_EQ(put(*store, 20).error().code, "DISK_RESERVE");
  free_bytes_ = uint64_t{1} << 40;
  fill(*store, 20, 25);
  expect_exactly(*store, 25);
}

TEST_F(Faults, WithoutRoomForTheRecoveryNothingIsTouched) {
  {
    auto store = must_open();
    fill(*store, 0, 20);
  }
  auto before = contents(database());
  free_bytes_ = 1 << 20;
  Error error = refusal_of(options());
  EXPECT_EQ(error.code, "DISK_RESERVE");
  EXPECT_NE(error.message.find(data().string()), std::string::npos) << error.message;
  EXPECT_EQ(contents(database()), before);
  free_bytes_ = uint64_t{1} << 40;
  expect_exactly(*must_open(), 20);
}

TEST_F(Faults, ADiskThatFillsWhileOpeningIsSaidSoAndHeals) {
  {
    auto store = must_open();
    fill(*store, 0, 20);
  }
  disk_->fail({.operation = Operation::kAppend, .failure = Failure::kNoSpace});
  Error error = refusal_of(faulty());
  EXPECT_EQ(error.code, "DISK_RESERVE") << error.message;
  EXPECT_EQ(error.kind, ErrorKind::kUnavailable);
  disk_->heal();
  expect_exactly(*must_open(faulty()), 20);
}

}  // namespace
}  // namespace millrace::store
