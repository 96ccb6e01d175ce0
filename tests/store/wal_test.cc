// The write-ahead log: what a crash leaves of it, what damage to it looks like, and how long it may grow.
#include <fmt/format.h>

#include "tests/store/store_fixture.h"

namespace millrace::store {
namespace {

class Wal : public StoreFixture {
 protected:
  /// Rows [0, synced) acknowledged as synced, then `unsynced` more that only the page cache has; and the process dies.
  void crash_with(int synced, int unsynced = 0) {
    auto store = must_open();
    fill(*store, 0, synced);
    fill(*store, synced, synced + unsynced, Durability::kAsync);
  }
};

TEST_F(Wal, ADropWithoutCloseIsACrashThatLosesNothing) {
  crash_with(30, 5);
  auto store = must_open();
  EXPECT_FALSE(store->open_report().created);
  EXPECT_FALSE(store->open_report().clean_stop);
  EXPECT_GT(store->open_report().wal_bytes, 0u);
  EXPECT_EQ(store->open_report().recovered_sequence, store->open_report().witnessed_sequence + 5);
  expect_exactly(*store, 35);
}

TEST_F(Wal, AfterACloseNothingIsReplayed) {
  {
    auto store = must_open();
    EXPECT_TRUE(store->open_report().created);
    fill(*store, 0, 100, Durability::kAsync);
    ASSERT_TRUE(store->close());
    EXPECT_TRUE(store->close()) << "twice is as good as once";
    EXPECT_EQ(put(*store, 100).error().code, "STORE_CLOSED");
  }
  auto store = must_open();
  EXPECT_TRUE(store->open_report().clean_stop);
  EXPECT_EQ(store->open_report().wal_bytes, 0u);
  EXPECT_EQ(store->open_report().witnessed_sequence, store->open_report().recovered_sequence)
      << "a close vouches for asynchronous writes too";
  expect_exactly(*store, 100);
}

TEST_F(Wal, ATornUnsyncedTailIsDroppedAndNothingElse) {
  crash_with(20, 1);
  copy_tree(data(), root() / "pristine");
  std::string wal = read_file(wal_file(database()));
  WalRecord last = wal_records(wal).back();
  ASSERT_EQ(last.at + kWalHeaderBytes + last.payload, wal.size());
  for (size_t left : {size_t{0}, size_t{1}, size_t{5}, size_t{6}, kWalHeaderBytes, kWalHeaderBytes + 1,
                      kWalHeaderBytes + last.payload / 2, kWalHeaderBytes + last.payload - 1}) {
    SCOPED_TRACE(fmt::format("{} of {} bytes of the record are left", left, kWalHeaderBytes + last.payload));
    copy_tree(root() / "pristine", data());
    std::filesystem::resize_file(wal_file(database()), last.at + left);
    auto store = must_open();
    expect_exactly(*store, 20);
    fill(*store, 20, 22);
    store.reset();
    expect_exactly(*must_open(), 22);
  }
}

TEST_F(Wal, ASyncedRecordThatIsCutOffIsDamage) {
  crash_with(20);
  copy_tree(data(), root() / "pristine");
  std::string wal = read_file(wal_file(database()));
  auto records = wal_records(wal);
  for (size_t end :
       {records.back().at, wal.size() - 1, records.back().at + 3, records[10].at, records[1].at, size_t{0}}) {
    SCOPED_TRACE(fmt::format("cut at {} of {}", end, wal.size()));
    copy_tree(root() / "pristine", data());
    std::filesystem::resize_file(wal_file(database()), end);
    Error error = refusal_of(options());
    EXPECT_EQ(error.code, "STORE_DAMAGED") << error.message;
    EXPECT_EQ(error.kind, ErrorKind::kCorruption);
    EXPECT_NE(error.message.find(data().string()), std::string::npos) << error.message;
  }
  copy_tree(root() / "pristine", data());
  std::filesystem::remove(wal_file(database()));
  EXPECT_EQ(refusal_of(options()).code, "STORE_DAMAGED");
}

// The length near the end is the worst: RocksDB takes the rest for a torn tail and drops it without a word.
TEST_F(Wal, AFlippedBitInASyncedRecordIsDamageWhereverItIs) {
  crash_with(30);
  copy_tree(data(), root() / "pristine");
  std::string wal = read_file(wal_file(database()));
  auto records = wal_records(wal);
  ASSERT_GT(records.size(), 30u);
  for (size_t index : {size_t{0}, records.size() / 2, records.size() - 2, records.size() - 1}) {
    const WalRecord& record = records[index];
    for (size_t offset : {size_t{0}, size_t{3}, size_t{4}, size_t{5}, size_t{6}, kWalHeaderBytes, kWalHeaderBytes + 8,
                          kWalHeaderBytes + record.payload / 2, kWalHeaderBytes + record.payload - 1}) {
      for (unsigned bit : {0u, 7u}) {
        SCOPED_TRACE(fmt::format("record {} of {}, byte {}, bit {}", index, records.size(), offset, bit));
        copy_tree(root() / "pristine", data());
        std::string flipped = wal;
        flipped[record.at + offset] = static_cast<char>(flipped[record.at + offset] ^ (1u << bit));
        write_file(wal_file(database()), flipped);
        Error error = refusal_of(options());
        EXPECT_EQ(error.code, "STORE_DAMAGED") << error.message;
        if (bit == 0) {
          EXPECT_EQ(refusal_of(options()).code, "STORE_DAMAGED") << "a refusal must not mend or hide it";
        }
      }
    }
  }
}

TEST_F(Wal, AcceptLossOpensWhatIsLeftAndBeginsANewEpoch) {
  crash_with(30);
  std::string wal = read_file(wal_file(database()));
  std::filesystem::resize_file(wal_file(database()), wal_records(wal).back().at);
  Options accepting = options();
  accepting.accept_loss = true;
  std::string new_epoch;
  EXPECT_EQ(refusal_of(options()).code, "STORE_DAMAGED");
  {
    auto store = must_open(accepting);
    new_epoch = epoch_of(*store);
    expect_exactly(*store, 29);
    fill(*store, 29, 40);
  }
  auto store = must_open();
  expect_exactly(*store, 40);
  EXPECT_EQ(epoch_of(*store), new_epoch) << "once only";
}

TEST_F(Wal, AcceptLossKeepsWhatComesBeforeTheDamageAndNothingBehindIt) {
  crash_with(30);
  std::string wal = read_file(wal_file(database()));
  auto records = wal_records(wal);
  constexpr int kDamaged = 12;
  wal[records[records.size() - 30 + kDamaged].at + kWalHeaderBytes + 20] ^= 4;
  write_file(wal_file(database()), wal);
  EXPECT_EQ(refusal_of(options()).code, "STORE_DAMAGED");
  Options accepting = options();
  accepting.accept_loss = true;
  expect_exactly(*must_open(accepting), kDamaged);
  expect_exactly(*must_open(), kDamaged);
}

TEST_F(Wal, StaysWithinItsBoundInRows) {
  Options small = options();
  small.max_wal_rows = 1000;
  auto store = must_open(small);
  WriteBatch batch;
  for (int i = 0; i < 10'000; ++i) {
    batch.clear();
    batch.put(Table::kTopics, key_of(i), "v");
    ASSERT_TRUE(store->write(batch, Durability::kAsync));
    EXPECT_LE(store->stats().wal_rows, 1000u);
  }
  ASSERT_FALSE(store->failed());
  store.reset();
  // What is replayed: what came since the last flush was begun, and what was being flushed.
  size_t replayed = 0;
  for (const auto& file : wal_files(database())) replayed += wal_records(read_file(file)).size();
  EXPECT_LE(replayed, 2000u);
  EXPECT_EQ(must_open()->snapshot()->get(Table::kTopics, key_of(9'999)).value(), "v");
}

TEST_F(Wal, StaysWithinItsBoundInBytes) {
  Options small = options();
  small.max_wal_bytes = 1 << 20;
  auto store = must_open(small);
  WriteBatch batch;
  for (int i = 0; i < 500; ++i) {
    batch.clear();
    batch.put(Table::kLog, key_of(i), std::string(16 * 1024, 'x'));
    ASSERT_TRUE(store->write(batch, Durability::kAsync));
    EXPECT_LE(store->stats().wal_bytes, uint64_t{1} << 20);
  }
  ASSERT_FALSE(store->failed());
  store.reset();
  auto again = must_open();
  EXPECT_LE(again->open_report().wal_bytes, uint64_t{2} << 20);
  EXPECT_GT(again->open_report().wal_bytes, 0u);
  EXPECT_TRUE(again->snapshot()->get(Table::kLog, key_of(499)).value().has_value());
}

/// Logs made from a prepared file, which end in zeros.
class PreparedWal : public Wal {
 protected:
  static constexpr uint64_t kPreparedBytes = 1 << 20;
  std::unique_ptr<Store> must_open_prepared() {
    Options prepared = options();
    prepared.prepared_wal_bytes = kPreparedBytes;
    return must_open(prepared);
  }
  std::filesystem::path log() { return wal_file(database()); }
};

TEST_F(PreparedWal, EndsInZerosThatNobodySees) {
  {
    auto store = must_open_prepared();
    fill(*store, 0, 20);
  }
  const uint64_t on_disk = std::filesystem::file_size(log());
  EXPECT_EQ(on_disk, kPreparedBytes);
  auto store = must_open_prepared();
  EXPECT_GT(store->open_report().wal_bytes, 0u);
  EXPECT_LT(store->open_report().wal_bytes, 20'000u) << "what is replayed, not the file's size";
  EXPECT_EQ(store->open_report().torn_bytes, 0u);
  expect_exactly(*store, 20);
  fill(*store, 20, 25);
  store.reset();
  expect_exactly(*must_open(), 25);
}

TEST_F(PreparedWal, GoesOnBeyondWhatWasPrepared) {
  const std::string value(100'000, 'v');
  auto write = [&](Store& store, int i) {
    WriteBatch batch;
    batch.put(Table::kLog, key_of(i), value);
    ASSERT_TRUE(store.write(batch, Durability::kSync));
  };
  {
    auto store = must_open_prepared();
    for (int i = 0; i < 25; ++i) write(*store, i);
  }
  auto store = must_open_prepared();
  for (int i = 0; i < 25; ++i) EXPECT_EQ(store->snapshot()->get(Table::kLog, key_of(i)).value(), value) << i;
}

TEST_F(PreparedWal, AnUnsyncedWriteOfWhichPagesAreMissingIsDroppedAndReported) {
  const uint64_t begins = [&] {
    auto store = must_open_prepared();
    fill(*store, 0, 20);
    const uint64_t at = read_file(log()).find_last_not_of('\0') + 1;
    WriteBatch batch;
    batch.put(Table::kLog, "large", std::string(100'000, 'v'));
    EXPECT_TRUE(store->write(batch, Durability::kAsync));
    return at;
  }();
  copy_tree(data(), root() / "pristine");
  for (uint64_t missing : {begins / 4096, begins / 4096 + 1, begins / 4096 + 10, (begins + 100'000) / 4096}) {
    SCOPED_TRACE(fmt::format("page {}", missing));
    copy_tree(root() / "pristine", data());
    std::string bytes = read_file(log());
    const uint64_t from = std::max(begins, missing * 4096), to = (missing + 1) * 4096;
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(from), bytes.begin() + static_cast<ptrdiff_t>(to), '\0');
    write_file(log(), bytes);
    auto store = must_open_prepared();
    EXPECT_GT(store->open_report().torn_bytes, 90'000u);
    EXPECT_FALSE(store->snapshot()->get(Table::kLog, "large").value().has_value());
    expect_exactly(*store, 20);
    fill(*store, 20, 22);
    store.reset();
    expect_exactly(*must_open_prepared(), 22);
    std::filesystem::remove_all(data());
  }
}

// The witness page is not synced with every write: after a loss of power it may vouch for less than was acknowledged.
TEST_F(PreparedWal, DamageBeforeAWholeWriteIsDamageWhateverTheWitnessKnows) {
  std::string witness;
  {
    auto store = must_open_prepared();
    fill(*store, 0, 2);
    witness = read_file(data() / "witness");
    fill(*store, 2, 20);
  }
  write_file(data() / "witness", witness);
  copy_tree(data(), root() / "pristine");
  const std::string bytes = read_file(log());
  const auto records = wal_records(bytes.substr(0, bytes.find_last_not_of('\0') + 1));
  ASSERT_GT(records.size(), 20u);
  for (size_t from_end : {2u, 5u, 15u}) {
    const WalRecord& record = records[records.size() - from_end];
    for (size_t byte : {size_t{0}, size_t{4}, size_t{5}, size_t{6}, kWalHeaderBytes, kWalHeaderBytes + 12}) {
      SCOPED_TRACE(fmt::format("byte {} of the record {} from the end", byte, from_end));
      copy_tree(root() / "pristine", data());
      std::string flipped = bytes;
      flipped[record.at + byte] = static_cast<char>(flipped[record.at + byte] ^ 0x10);
      write_file(log(), flipped);
      Error refused = refusal_of(options());
      EXPECT_EQ(refused.code, "STORE_DAMAGED");
      EXPECT_NE(refused.message.find("goes on at byte"), std::string::npos) << refused.message;
      EXPECT_EQ(read_file(log()), flipped) << "nothing was cut";
      std::filesystem::remove_all(data());
    }
  }
}

// The last fragment of a long write is gone, block and all, and a whole write begins where it should be.
TEST_F(PreparedWal, AWriteThatIsCutShortByAnotherIsDamage) {
  std::string witness;
  {
    auto store = must_open_prepared();
    fill(*store, 0, 2);
    witness = read_file(data() / "witness");
    WriteBatch batch;
    batch.put(Table::kLog, "large", std::string(40'000, 'v'));
    ASSERT_TRUE(store->write(batch, Durability::kSync));
    fill(*store, 2, 3);
  }
  write_file(data() / "witness", witness);
  std::string bytes = read_file(log());
  const auto records = wal_records(bytes.substr(0, bytes.find_last_not_of('\0') + 1));
  const WalRecord last = records.back(), cut = records[records.size() - 2];
  ASSERT_EQ(cut.at % 32'768, 0u) << "the rest of the long write";
  bytes.replace(cut.at, kWalHeaderBytes + last.payload, bytes.substr(last.at, kWalHeaderBytes + last.payload));
  std::fill(bytes.begin() + static_cast<ptrdiff_t>(cut.at + kWalHeaderBytes + last.payload), bytes.end(), '\0');
  write_file(log(), bytes);
  Error refused = refusal_of(options());
  EXPECT_EQ(refused.code, "STORE_DAMAGED");
  EXPECT_NE(refused.message.find("goes on at byte"), std::string::npos) << refused.message;
}

TEST_F(PreparedWal, AWitnessThatKnowsTellsDamageFromATornWrite) {
  {
    auto store = must_open_prepared();
    fill(*store, 0, 20);
  }
  std::string bytes = read_file(log());
  bytes[bytes.find_last_not_of('\0')] ^= 0x10;  // In the last write, which was synced.
  write_file(log(), bytes);
  Error refused = refusal_of(options());
  EXPECT_EQ(refused.code, "STORE_DAMAGED");
  EXPECT_NE(refused.message.find("cannot be read at byte"), std::string::npos) << refused.message;
  Options accepting = options();
  accepting.accept_loss = true;
  expect_exactly(*must_open(accepting), 19);
}

TEST_F(PreparedWal, TheOnlyWriteOfALogIsNotCutOffWhenItWasSynced) {
  {
    auto store = must_open_prepared();
    fill(*store, 0, 20);
    ASSERT_TRUE(store->close());
  }
  {
    auto store = must_open_prepared();
    put(*store, 20);
  }
  std::string bytes = read_file(log());
  std::string damaged = bytes;
  damaged[bytes.find_last_not_of('\0')] ^= 0x10;
  write_file(log(), damaged);
  for (int i = 0; i < 2; ++i) {
    Error refused = refusal_of(options());
    EXPECT_EQ(refused.code, "STORE_DAMAGED");
    EXPECT_NE(refused.message.find("cannot be read at byte 0"), std::string::npos) << refused.message;
    EXPECT_EQ(read_file(log()), damaged);
  }
  write_file(log(), bytes);
  expect_exactly(*must_open_prepared(), 21);
}

TEST_F(PreparedWal, TheOnlyWriteOfALogIsDroppedWhenNobodyWasToldOfIt) {
  {
    auto store = must_open_prepared();
    fill(*store, 0, 20);
    ASSERT_TRUE(store->close());
  }
  {
    auto store = must_open_prepared();
    put(*store, 20, Durability::kAsync);
  }
  std::string bytes = read_file(log());
  bytes[bytes.find_last_not_of('\0')] ^= 0x10;
  write_file(log(), bytes);
  auto store = must_open_prepared();
  EXPECT_GT(store->open_report().torn_bytes, 0u);
  expect_exactly(*store, 20);
}

TEST_F(PreparedWal, WhatLooksLikeAWriteWithinATornOneIsNone) {
  std::string witness;
  std::string first_log;
  {
    auto store = must_open_prepared();
    fill(*store, 0, 3);
    witness = read_file(data() / "witness");
    first_log = read_file(log());
    first_log.resize(first_log.find_last_not_of('\0') + 1);
    // A log file within a record.
    WriteBatch batch;
    batch.put(Table::kLog, "a", std::string(5'000, 'v') + first_log);
    ASSERT_TRUE(store->write(batch, Durability::kAsync));
  }
  std::string bytes = read_file(log());
  std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(first_log.size()), 100, '\0');  // Its header has not arrived.
  write_file(log(), bytes);
  auto store = must_open_prepared();
  EXPECT_GT(store->open_report().torn_bytes, 4'000u);
  expect_exactly(*store, 3);
}

TEST_F(PreparedWal, WhatIsReadyIsUsedAgainOnlyAfterAnOrderlyStop) {
  {
    auto store = must_open_prepared();
    fill(*store, 0, 3);
  }
  write_file(data() / "next-wal", std::string(kPreparedBytes, 'x'));
  {
    auto store = must_open_prepared();
    fill(*store, 3, 6);
    EXPECT_EQ(read_file(log()).find('x'), std::string::npos);
  }
  std::filesystem::remove(data() / "next-wal");
  std::filesystem::create_directory(data() / "next-wal");
  expect_exactly(*must_open_prepared(), 6);
  expect_exactly(*must_open(), 6);
  EXPECT_FALSE(std::filesystem::exists(data() / "next-wal")) << "nobody keeps one ready any more";
  EXPECT_FALSE(std::filesystem::exists(data() / "next-wal.new"));
}

TEST_F(PreparedWal, ACheckpointCopiesNoZeros) {
  auto store = must_open_prepared();
  fill(*store, 0, 20);
  ASSERT_TRUE(store->checkpoint(root() / "copy"));
  for (const auto& file : std::filesystem::directory_iterator(root() / "copy" / "db"))
    EXPECT_LT(std::filesystem::file_size(file), 100'000u) << file.path();
  EXPECT_FALSE(std::filesystem::exists(root() / "copy" / "next-wal"));
}

TEST_F(PreparedWal, NoneIsMadeWhereTheDiskIsNearlyFull) {
  Options tight = options();
  tight.reserve_bytes = 100 << 20;
  tight.prepared_wal_bytes = kPreparedBytes;
  free_bytes_ = tight.reserve_bytes + kPreparedBytes;
  {
    auto store = must_open(tight);
    fill(*store, 0, 20);
    EXPECT_LT(std::filesystem::file_size(log()), kPreparedBytes);
  }
  EXPECT_FALSE(std::filesystem::exists(data() / "next-wal"));
  expect_exactly(*must_open(tight), 20);
}

}  // namespace
}  // namespace millrace::store
