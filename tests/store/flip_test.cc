// One flipped bit anywhere in a data directory: either it is refused, or what is read is what was written.
#include <fmt/format.h>

#include <random>
#include <set>

#include "tests/store/store_fixture.h"
#include "tests/support/random_seed.h"

namespace millrace::store {
namespace {

/// The parameter: how large a prepared log is, or 0 for logs that grow.
class Flips : public StoreFixture, public ::testing::WithParamInterface<uint64_t> {
 protected:
  Options with_logs() const {
    Options chosen = options();
    chosen.prepared_wal_bytes = GetParam();
    return chosen;
  }
  using Model = std::map<std::string, std::string>;
  static constexpr std::array kTables = {Table::kTopics, Table::kLog, Table::kTimers, Table::kCheckpoints};

  /// Files of several ages, deletions and a log with synced records, in several tables; the process dies.
  void make(std::mt19937_64& random) {
    for (int round = 0; round < 3; ++round) {
      auto store = must_open(with_logs());
      WriteBatch batch;
      for (int i = 0; i < 60; ++i) {
        batch.clear();
        for (Table table : kTables) {
          std::string key = fmt::format("key-{:03}", random() % 100);
          std::string value(random() % 300, static_cast<char>('a' + random() % 26));
          if (random() % 8 == 0) {
            batch.erase(table, key);
            model_[table].erase(key);
          } else {
            batch.put(table, key, value);
            model_[table][key] = value;
          }
        }
        ASSERT_TRUE(store->write(batch, Durability::kSync));
      }
      if (round < 2) {
        ASSERT_TRUE(store->close());
      }
    }
  }

  /// Returns whether everything could be read.
  bool read_all(Store& store) {
    bool whole = true;
    auto snapshot = store.snapshot();
    for (Table table : kTables) {
      for (int i = 0; i < 100; ++i) {
        std::string key = fmt::format("key-{:03}", i);
        auto expected = model_[table].find(key);
        auto value = snapshot->get(table, key);
        if (!value) {
          EXPECT_EQ(value.error().code, "STORE_DAMAGED") << value.error().message;
          whole = false;
        } else if (expected == model_[table].end()) {
          EXPECT_FALSE(value->has_value()) << key;
        } else {
          EXPECT_EQ(*value, expected->second) << key;
        }
      }
      whole = scan(*snapshot, table) && whole;
    }
    return whole;
  }

  bool scan(const Snapshot& snapshot, Table table) {
    auto cursor = snapshot.scan(table, "", "");
    auto expected = model_[table].begin();
    for (cursor->seek_to_first(); cursor->valid(); cursor->next(), ++expected) {
      if (expected == model_[table].end() || cursor->key() != expected->first) {
        ADD_FAILURE() << "unexpected key " << cursor->key();
        return false;
      }
      EXPECT_EQ(cursor->value(), expected->second);
    }
    if (!cursor->status()) return false;
    EXPECT_EQ(expected, model_[table].end()) << "a scan ended early without an error";
    return true;
  }

  std::map<Table, Model> model_;
};

INSTANTIATE_TEST_SUITE_P(PreparedBytes, Flips, ::testing::Values(0, 64 * 1024));

TEST_P(Flips, AreRefusedOrHarmless) {
  constexpr int kRounds = 300;
  std::mt19937_64 random(tests::random_seed());
  make(random);
  copy_tree(data(), root() / "pristine");
  auto files = contents(data());
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  const std::set<std::string_view> refusals = {"STORE_DAMAGED", "FORMAT_TOO_NEW"};
  int refused = 0, unreadable = 0, harmless = 0;
  for (int round = 0; round < kRounds; ++round) {
    // Every file has its turn, whatever its size.
    auto file = std::next(files.begin(), static_cast<ptrdiff_t>(static_cast<size_t>(round) % files.size()));
    size_t at = random() % file->second.size();
    int bit = static_cast<int>(random() % 8);
    SCOPED_TRACE(fmt::format("{}, byte {} of {}, bit {}", file->first, at, file->second.size(), bit));
    copy_tree(root() / "pristine", data());
    std::string flipped = file->second;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
    write_file(data() / file->first, flipped);
    auto store = Store::open(with_logs());
    if (!store) {
      EXPECT_TRUE(refusals.contains(store.error().code)) << to_string(store.error());
      ++refused;
      continue;
    }
    if (read_all(**store)) {
      ++harmless;
    } else {
      ++unreadable;
      EXPECT_FALSE((*store)->verify()) << "a verification finds what a read finds";
    }
  }
  std::printf("%d refused, %d found by a read, %d harmless\n", refused, unreadable, harmless);
  EXPECT_GT(refused, kRounds / 10);
}

/// The footer of a table file has no checksum: every bit of it.
TEST_P(Flips, OfAFooterAreRefusedOrHarmless) {
  std::mt19937_64 random(tests::random_seed());
  make(random);
  copy_tree(data(), root() / "pristine");
  auto files = contents(data());
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".sst"); });
  ASSERT_FALSE(files.empty());
  const auto& [name, content] = *files.rbegin();
  for (size_t byte = 1; byte <= 53; ++byte) {
    const int bit = static_cast<int>(random() % 8);
    SCOPED_TRACE(fmt::format("{}, byte {} from the end, bit {}", name, byte, bit));
    copy_tree(root() / "pristine", data());
    std::string flipped = content;
    char& place = flipped[flipped.size() - byte];
    place = static_cast<char>(place ^ (1 << bit));
    write_file(data() / name, flipped);
    auto store = Store::open(with_logs());
    if (!store)
      EXPECT_EQ(store.error().code, "STORE_DAMAGED") << to_string(store.error());
    else
      read_all(**store);
  }
}

}  // namespace
}  // namespace millrace::store
