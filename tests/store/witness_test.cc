// The witness page: what it catches, and what it must not be taken for.
#include "store/witness.h"

#include "tests/store/store_fixture.h"

namespace millrace::store {
namespace {

constexpr size_t kSlotBytes = 4096;

class WitnessPage : public StoreFixture {
 protected:
  std::filesystem::path page() const { return data() / "witness"; }
  void make(int rows) {
    auto store = must_open();
    fill(*store, 0, rows);
    epoch_ = epoch_of(*store);
  }
  /// It is damage; with accept_loss it opens, `rows` are there, and a new epoch begins, once.
  void expect_damaged_yet_acceptable(int rows, std::string_view words) {
    Error error = refusal_of(options());
    EXPECT_EQ(error.code, "STORE_DAMAGED");
    EXPECT_EQ(error.kind, ErrorKind::kCorruption);
    EXPECT_NE(error.message.find(words), std::string::npos) << error.message;
    Options accepting = options();
    accepting.accept_loss = true;
    std::string begun;
    {
      auto store = must_open(accepting);
      expect_exactly(*store, rows);
      begun = epoch_of(*store);
      EXPECT_NE(begun, epoch_);
      fill(*store, rows, rows + 3);
    }
    auto store = must_open();
    expect_exactly(*store, rows + 3);
    EXPECT_EQ(epoch_of(*store), begun);
  }
  std::string epoch_;
};

TEST_F(WitnessPage, MissingIsDamage) {
  make(10);
  std::filesystem::remove(page());
  expect_damaged_yet_acceptable(10, "is missing");
}

TEST_F(WitnessPage, WithBothSlotsDamagedIsDamage) {
  make(10);
  std::string content = read_file(page());
  content[20] ^= 1;
  content[kSlotBytes + 20] ^= 1;
  write_file(page(), content);
  expect_damaged_yet_acceptable(10, "neither of its two slots");
}

TEST_F(WitnessPage, OfAnotherSizeIsDamage) {
  make(10);
  std::filesystem::resize_file(page(), 100);
  expect_damaged_yet_acceptable(10, "100 bytes");
}

TEST_F(WitnessPage, WithOneSlotTornOpens) {
  make(10);
  copy_tree(data(), root() / "pristine");
  for (size_t slot : {0u, 1u}) {
    copy_tree(root() / "pristine", data());
    std::string content = read_file(page());
    content[slot * kSlotBytes + 16] ^= 1;
    write_file(page(), content);
    expect_exactly(*must_open(), 10);
  }
}

// After a loss of power the page may be older than the database: it then vouches for less.
TEST_F(WitnessPage, AnOlderOneOpens) {
  {
    auto store = must_open();
    fill(*store, 0, 5);
    std::string older = read_file(page());
    fill(*store, 5, 20);
    store.reset();
    write_file(page(), older);
  }
  auto store = must_open();
  EXPECT_LT(store->open_report().witnessed_sequence, store->open_report().recovered_sequence);
  expect_exactly(*store, 20);
}

TEST_F(WitnessPage, OfAnotherDatabaseIsDamage) {
  make(10);
  {
    auto other = must_open(options(root() / "other"));
    fill(*other, 0, 3);
  }
  std::filesystem::copy_file(root() / "other" / "witness", page(), std::filesystem::copy_options::overwrite_existing);
  expect_damaged_yet_acceptable(10, "two different databases");
}

TEST_F(WitnessPage, KnowsWhenTheDatabaseIsGone) {
  make(10);
  std::filesystem::remove_all(database());
  Error error = refusal_of(options());
  EXPECT_EQ(error.code, "STORE_DAMAGED");
  EXPECT_NE(error.message.find("is gone"), std::string::npos) << error.message;
}

TEST_F(WitnessPage, VouchesForSyncedRowsOnly) {
  auto store = must_open();
  fill(*store, 0, 5);
  uint64_t synced = store->last_sequence();
  fill(*store, 5, 9, Durability::kAsync);
  store.reset();
  auto witness = Witness::load(page());
  ASSERT_TRUE(witness && *witness);
  EXPECT_EQ((*witness)->record().sequence, synced);
  EXPECT_EQ((*witness)->record().state, WitnessState::kOpen);
}

TEST_F(WitnessPage, IsPartOfTheVerification) {
  auto store = must_open();
  fill(*store, 0, 5);
  EXPECT_TRUE(store->verify());
  std::string content = read_file(page());
  content[20] ^= 1;
  content[kSlotBytes + 20] ^= 1;
  // Into the same file, as a bad disk would.
  std::FILE* file = std::fopen(page().c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(content.data(), 1, content.size(), file), content.size());
  ASSERT_EQ(std::fclose(file), 0);
  Status verified = store->verify();
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, "STORE_DAMAGED");
}

}  // namespace
}  // namespace millrace::store
