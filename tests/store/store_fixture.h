#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/store.h"
#include "tests/support/temp_dir.h"

namespace millrace::store {

/// A data directory of its own for each test, with plenty of disk, and the rows that most tests write:
/// `key_of(i)` -> `value_of(i)` in the table topics.
class StoreFixture : public ::testing::Test {
 protected:
  std::filesystem::path root() const { return temp_.path(); }
  std::filesystem::path data() const { return temp_.path() / "data"; }
  std::filesystem::path database() const { return data() / "db"; }

  /// For data(), or another directory.
  Options options() const { return options(data()); }
  Options options(const std::filesystem::path& directory) const;
  /// Fails the test when it cannot.
  static std::unique_ptr<Store> must_open(Options options);
  std::unique_ptr<Store> must_open() const { return must_open(options()); }
  /// The error of opening; fails the test when it opens.
  static Error refusal_of(Options options);

  static std::string key_of(int i);
  static std::string value_of(int i);
  static Status put(Store& store, int i, Durability durability = Durability::kSync);
  /// Rows [from, to), one write each.
  static void fill(Store& store, int from, int to, Durability durability = Durability::kSync);
  /// Whether row i is there; fails the test when it has another value or cannot be read.
  static bool has(Store& store, int i);
  /// Rows [0, count) are there with their values, and none after them.
  static void expect_exactly(Store& store, int count);
  static std::string epoch_of(Store& store);

  /// Free bytes that the stores of this test are told.
  std::atomic<uint64_t> free_bytes_{uint64_t{1} << 40};

 private:
  tests::TempDir temp_;
};

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& content);
/// The write-ahead log files that hold something, oldest first.
std::vector<std::filesystem::path> wal_files(const std::filesystem::path& database);
/// The only one; fails the test when there are more.
std::filesystem::path wal_file(const std::filesystem::path& database);
void copy_tree(const std::filesystem::path& from, const std::filesystem::path& to);
/// Every file below with its content.
std::map<std::string, std::string> contents(const std::filesystem::path& directory);

/// Where the physical records of a write-ahead log begin (a header of kWalHeaderBytes, then the payload).
struct WalRecord {
  size_t at;
  size_t payload;
};
constexpr size_t kWalHeaderBytes = 7;  // CRC-32C u32, length u16, type u8; little-endian.
std::vector<WalRecord> wal_records(const std::string& wal);

}  // namespace millrace::store
