#include "store/store.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace millrace::store {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> open() {
    Options options;
    options.directory = temp_.path() / "data";
    auto store = Store::open(options);
    if (!store) ADD_FAILURE() << to_string(store.error());
    return store ? std::move(*store) : nullptr;
  }
  tests::TempDir temp_;
};

TEST_F(StoreTest, a_row_survives_a_drop_without_close) {
  {
    auto store = open();
    ASSERT_TRUE(store);
    WriteBatch batch;
    batch.put(Table::kTopics, "k", "v");
    batch.put(Table::kLog, "k2", "head", "tail");
    ASSERT_TRUE(store->write(batch, Durability::kSync));
  }
  auto store = open();
  ASSERT_TRUE(store);
  EXPECT_FALSE(store->open_report().created);
  EXPECT_FALSE(store->open_report().clean_stop);
  auto snapshot = store->snapshot();
  EXPECT_EQ(snapshot->get(Table::kTopics, "k").value(), "v");
  EXPECT_EQ(snapshot->get(Table::kLog, "k2").value(), "headtail");
  EXPECT_EQ(snapshot->get(Table::kLog, "absent").value(), std::nullopt);
  auto cursor = snapshot->scan(Table::kLog, "", "");
  cursor->seek_to_first();
  ASSERT_TRUE(cursor->valid());
  EXPECT_EQ(cursor->key(), "k2");
  cursor->next();
  EXPECT_FALSE(cursor->valid());
  EXPECT_TRUE(cursor->status());
}

TEST_F(StoreTest, a_closed_store_says_so_when_opened_again) {
  {
    auto store = open();
    WriteBatch batch;
    batch.put(Table::kTopics, "k", "v");
    ASSERT_TRUE(store->write(batch, Durability::kAsync));
    ASSERT_TRUE(store->close());
  }
  auto store = open();
  ASSERT_TRUE(store);
  EXPECT_TRUE(store->open_report().clean_stop);
  EXPECT_EQ(store->snapshot()->get(Table::kTopics, "k").value(), "v");
}

}  // namespace
}  // namespace millrace::store
