// Reading: gets, snapshots, cursors and their bounds, ranges erased.
#include <random>

#include "tests/store/store_fixture.h"

namespace millrace::store {
namespace {

class Reading : public StoreFixture {};

std::string keys_of(Cursor& cursor) {
  std::string keys;
  for (; cursor.valid(); cursor.next()) keys += std::string(cursor.key()) + " ";
  EXPECT_TRUE(cursor.status());
  return keys;
}

std::string at(Cursor& cursor) {
  EXPECT_TRUE(cursor.status());
  return cursor.valid() ? std::string(cursor.key()) : "nowhere";
}

void put_keys(Store& store, std::initializer_list<std::string_view> keys, Table table = Table::kTimers) {
  WriteBatch batch;
  for (std::string_view key : keys) batch.put(table, key, "v");
  ASSERT_TRUE(store.write(batch, Durability::kSync));
}

TEST_F(Reading, TablesAreApartAndAnAbsentRowIsNoError) {
  auto store = must_open();
  WriteBatch batch;
  batch.put(Table::kTopics, "k", "v");
  batch.put(Table::kLog, "k", "head", "tail");
  batch.put(Table::kGroups, "empty", "");
  EXPECT_EQ(batch.rows(), 3u);
  ASSERT_TRUE(store->write(batch, Durability::kSync));
  auto snapshot = store->snapshot();
  EXPECT_EQ(snapshot->get(Table::kTopics, "k").value(), "v");
  EXPECT_EQ(snapshot->get(Table::kLog, "k").value(), "headtail");
  EXPECT_EQ(snapshot->get(Table::kGroups, "empty").value(), "");
  EXPECT_EQ(snapshot->get(Table::kGroups, "k").value(), std::nullopt);
}

TEST_F(Reading, EveryTableCanBeWrittenAndRead) {
  auto store = must_open();
  WriteBatch batch;
  for (size_t i = 0; i < kTableNames.size(); ++i)
    batch.put(static_cast<Table>(i), "key", std::string("of ") + std::string(kTableNames[i]));
  ASSERT_TRUE(store->write(batch, Durability::kSync));
  store.reset();
  store = must_open();
  for (size_t i = 0; i < kTableNames.size(); ++i)
    EXPECT_EQ(store->snapshot()->get(static_cast<Table>(i), "key").value(), "of " + std::string(kTableNames[i]));
}

TEST_F(Reading, ASnapshotDoesNotSeeLaterWrites) {
  auto store = must_open();
  put_keys(*store, {"a", "b"});
  auto before = store->snapshot();
  auto cursor = before->scan(Table::kTimers, "", "");
  WriteBatch batch;
  batch.erase(Table::kTimers, "a");
  batch.put(Table::kTimers, "b", "changed");
  batch.put(Table::kTimers, "c", "new");
  ASSERT_TRUE(store->write(batch, Durability::kSync));
  EXPECT_EQ(before->get(Table::kTimers, "a").value(), "v");
  EXPECT_EQ(before->get(Table::kTimers, "b").value(), "v");
  EXPECT_EQ(before->get(Table::kTimers, "c").value(), std::nullopt);
  cursor->seek_to_first();
  EXPECT_EQ(keys_of(*cursor), "a b ");
  auto after = store->snapshot();
  EXPECT_EQ(after->get(Table::kTimers, "a").value(), std::nullopt);
  EXPECT_EQ(after->get(Table::kTimers, "b").value(), "changed");
}

TEST_F(Reading, ACursorStaysWithinItsBounds) {
  auto store = must_open();
  put_keys(*store, {"a", "b1", "b3", "b5", "c"});
  auto snapshot = store->snapshot();
  auto cursor = snapshot->scan(Table::kTimers, "b", "c");
  EXPECT_FALSE(cursor->valid()) << "it starts nowhere";
  cursor->seek_to_first();
  EXPECT_EQ(keys_of(*cursor), "b1 b3 b5 ");
  cursor->seek_to_last();
  EXPECT_EQ(at(*cursor), "b5");
  cursor->prev();
  EXPECT_EQ(at(*cursor), "b3");
  cursor->seek("b2");
  EXPECT_EQ(at(*cursor), "b3");
  cursor->seek("a");
  EXPECT_EQ(at(*cursor), "b1");
  cursor->seek("b6");
  EXPECT_EQ(at(*cursor), "nowhere");
  cursor->seek("c");
  EXPECT_EQ(at(*cursor), "nowhere");
  cursor->seek("b1");
  cursor->prev();
  EXPECT_EQ(at(*cursor), "nowhere");
  EXPECT_EQ(at(*snapshot->scan(Table::kTimers, "d", "e")), "nowhere");
}

// As the log looks for the batch that holds an offset.
TEST_F(Reading, SeekForPrevFindsTheLastKeyNotAfter) {
  auto store = must_open();
  put_keys(*store, {"a", "b1", "b3", "c"});
  auto snapshot = store->snapshot();
  auto cursor = snapshot->scan(Table::kTimers, "b", "c");
  cursor->seek_for_prev("b2");
  EXPECT_EQ(at(*cursor), "b1");
  cursor->seek_for_prev("b3");
  EXPECT_EQ(at(*cursor), "b3");
  cursor->seek_for_prev("z");
  EXPECT_EQ(at(*cursor), "b3");
  cursor->seek_for_prev("b0");
  EXPECT_EQ(at(*cursor), "nowhere") << "a is before the lower bound";
  auto open_end = snapshot->scan(Table::kTimers, "b", "");
  open_end->seek_for_prev("z");
  EXPECT_EQ(at(*open_end), "c");
}

TEST_F(Reading, AnErasedRangeIsGoneAndItsEndIsNot) {
  auto store = must_open();
  fill(*store, 0, 50);
  WriteBatch batch;
  batch.erase_range(Table::kTopics, key_of(10), key_of(40));
  ASSERT_TRUE(store->write(batch, Durability::kSync));
  for (bool reopened : {false, true}) {
    if (reopened) {
      store.reset();
      store = must_open();
    }
    for (int i = 0; i < 50; ++i) EXPECT_EQ(has(*store, i), i < 10 || i >= 40) << i;
    auto snapshot = store->snapshot();
    auto cursor = snapshot->scan(Table::kTopics, "", "");
    cursor->seek(key_of(10));
    EXPECT_EQ(at(*cursor), key_of(40));
    cursor->seek_for_prev(key_of(39));
    EXPECT_EQ(at(*cursor), key_of(9));
  }
}

// Files are dropped below level 0 only, where a compaction has to put them first: hence several, and the loop.
TEST_F(Reading, DroppedFilesGiveTheirSpaceBackAndTakeNoLiveRow) {
  std::mt19937_64 random(1);  // What does not compress.
  auto store = must_open();
  WriteBatch batch;
  for (int file = 0; file < 6; ++file) {
    batch.clear();
    for (int i = 0; i < 20; ++i) {
      std::string value(16 * 1024, '\0');
      for (char& byte : value) byte = static_cast<char>(random());
      batch.put(Table::kLog, key_of(file * 20 + i), value);
    }
    ASSERT_TRUE(store->write(batch, Durability::kAsync));
    ASSERT_TRUE(store->close());
    store.reset();
    store = must_open();
  }
  uint64_t before = store->stats().disk_bytes;
  ASSERT_GT(before, 1'500'000u);
  batch.clear();
  batch.erase_range(Table::kLog, key_of(0), key_of(1000));
  ASSERT_TRUE(store->write(batch, Durability::kSync));
  put_keys(*store, {key_of(1000), key_of(2000)}, Table::kLog);
  while (store->stats().disk_bytes > before / 4)
    ASSERT_TRUE(store->drop_files_in_range(Table::kLog, key_of(0), key_of(1000)));
  EXPECT_EQ(store->snapshot()->get(Table::kLog, key_of(1000)).value(), "v");
  EXPECT_EQ(store->snapshot()->get(Table::kLog, key_of(7)).value(), std::nullopt);
}

TEST_F(Reading, AnEmptyBatchIsNoWrite) {
  auto store = must_open();
  uint64_t sequence = store->last_sequence();
  WriteBatch batch;
  EXPECT_TRUE(store->write(batch, Durability::kSync));
  EXPECT_EQ(store->last_sequence(), sequence);
  put_keys(*store, {"a", "b", "c"});
  EXPECT_EQ(store->last_sequence(), sequence + 3) << "a row, a number";
}

}  // namespace
}  // namespace millrace::store
