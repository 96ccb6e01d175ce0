#include <cstring>

#include "store/witness.h"
#include "tests/store/store_fixture.h"

namespace millrace::store {
namespace {

class Checkpoint : public StoreFixture {};

Uuid uuid(std::string_view bytes) {
  Uuid uuid;
  std::memcpy(uuid.bytes.data(), bytes.data(), uuid.bytes.size());
  return uuid;
}

TEST_F(Checkpoint, OpensElsewhereAsANewEpochAndLeavesTheOriginalAlone) {
  auto store = must_open();
  fill(*store, 0, 20);
  fill(*store, 20, 25, Durability::kAsync);
  ASSERT_TRUE(store->checkpoint(root() / "copy"));
  fill(*store, 25, 30);
  copy_tree(root() / "copy", root() / "restored");
  auto kept = contents(root() / "copy");
  std::string begun;
  {
    auto restored = must_open(options(root() / "restored"));
    EXPECT_FALSE(restored->open_report().created);
    EXPECT_EQ(restored->open_report().wal_bytes, 0u) << "the copy was flushed";
    expect_exactly(*restored, 25);
    begun = epoch_of(*restored);
    EXPECT_NE(begun, epoch_of(*store));
    fill(*restored, 25, 50);
  }
  EXPECT_EQ(epoch_of(*must_open(options(root() / "restored"))), begun) << "it begins once";
  EXPECT_EQ(contents(root() / "copy"), kept) << "a copy can be restored from again";
  fill(*store, 30, 35);
  expect_exactly(*store, 35);
  EXPECT_TRUE(store->verify());
  store.reset();
  expect_exactly(*must_open(), 35);
}

TEST_F(Checkpoint, DoesNotOverwrite) {
  auto store = must_open();
  fill(*store, 0, 3);
  ASSERT_TRUE(store->checkpoint(root() / "copy"));
  Status again = store->checkpoint(root() / "copy");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, "CHECKPOINT_EXISTS");
  EXPECT_EQ(store->checkpoint(root() / "missing" / "copy").error().code, "FILE_IO");
}

TEST_F(Checkpoint, ClearsAwayWhatAnInterruptedOneLeft) {
  auto store = must_open();
  fill(*store, 0, 3);
  std::filesystem::create_directory(root() / "copy.incomplete");
  write_file(root() / "copy.incomplete" / "format", "half");
  ASSERT_TRUE(store->checkpoint(root() / "copy"));
  EXPECT_FALSE(std::filesystem::exists(root() / "copy.incomplete"));
  expect_exactly(*must_open(options(root() / "copy")), 3);
}

// While a new epoch begins, the page names the old and the new one; the database may have either.
TEST_F(Checkpoint, ANewEpochThatWasInterruptedIsBegunAgain) {
  auto store = must_open();
  fill(*store, 0, 10);
  ASSERT_TRUE(store->checkpoint(root() / "copy"));
  std::string old_epoch = epoch_of(*store);
  std::filesystem::path restored = root() / "restored";
  for (bool database_has_it : {false, true}) {
    copy_tree(root() / "copy", restored);
    std::string taken = old_epoch;
    if (database_has_it) taken = epoch_of(*must_open(options(restored)));
    WitnessRecord record{1, uuid(old_epoch), database_has_it ? uuid(taken) : Uuid::random(), WitnessState::kCheckpoint};
    ASSERT_TRUE(Witness::create(restored / "witness", record));
    auto opened = must_open(options(restored));
    expect_exactly(*opened, 10);
    EXPECT_NE(epoch_of(*opened), old_epoch);
    EXPECT_NE(epoch_of(*opened), taken);
  }
  // Without the successor on the page, the database's epoch is a stranger's.
  ASSERT_TRUE(Witness::create(restored / "witness", {1, uuid(old_epoch), {}, WitnessState::kOpen}));
  EXPECT_EQ(refusal_of(options(restored)).code, "STORE_DAMAGED");
}

}  // namespace
}  // namespace millrace::store
