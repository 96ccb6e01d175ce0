#include "tests/store/store_fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace millrace::store {

Options StoreFixture::options(const std::filesystem::path& directory) const {
  Options options;
  options.directory = directory;
  options.free_bytes = [this] { return free_bytes_.load(); };
  return options;
}

std::unique_ptr<Store> StoreFixture::must_open(Options options) {
  auto store = Store::open(std::move(options));
  if (store) return std::move(*store);
  throw std::runtime_error("cannot open: " + to_string(store.error()));
}

Error StoreFixture::refusal_of(Options options) {
  auto store = Store::open(std::move(options));
  if (!store) return store.error();
  ADD_FAILURE() << "it opened";
  return {};
}

std::string StoreFixture::key_of(int i) {
  return fmt::format("row-{:06}", i);
}

std::string StoreFixture::value_of(int i) {
  return fmt::format("value {} ", i) +
         std::string(static_cast<size_t>(40 + i * 37 % 200), static_cast<char>('a' + i % 26));
}

Status StoreFixture::put(Store& store, int i, Durability durability) {
  WriteBatch batch;
  batch.put(Table::kTopics, key_of(i), value_of(i));
  return store.write(batch, durability);
}

void StoreFixture::fill(Store& store, int from, int to, Durability durability) {
  for (int i = from; i < to; ++i) {
    Status written = put(store, i, durability);
    ASSERT_TRUE(written) << to_string(written.error());
  }
}

bool StoreFixture::has(Store& store, int i) {
  auto value = store.snapshot()->get(Table::kTopics, key_of(i));
  if (!value) {
    ADD_FAILURE() << "row " << i << ": " << to_string(value.error());
    return false;
  }
  if (!*value) return false;
  EXPECT_EQ(**value, value_of(i)) << "row " << i;
  return true;
}

void StoreFixture::expect_exactly(Store& store, int count) {
  auto snapshot = store.snapshot();
  auto cursor = snapshot->scan(Table::kTopics, "", "");
  int i = 0;
  for (cursor->seek_to_first(); cursor->valid(); cursor->next(), ++i) {
    ASSERT_EQ(cursor->key(), key_of(i));
    ASSERT_EQ(cursor->value(), value_of(i));
  }
  Status end = cursor->status();
  EXPECT_TRUE(end) << to_string(end.error());
  EXPECT_EQ(i, count);
}

std::string StoreFixture::epoch_of(Store& store) {
  return store.snapshot()->get(Table::kMeta, "store/epoch").value().value();
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!(out << content).flush()) throw std::runtime_error("cannot write " + path.string());
}

std::vector<std::filesystem::path> wal_files(const std::filesystem::path& database) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(database))
    if (entry.path().extension() == ".log" && entry.file_size() > 0) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::filesystem::path wal_file(const std::filesystem::path& database) {
  auto files = wal_files(database);
  EXPECT_EQ(files.size(), 1u);
  return files.back();
}

void copy_tree(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

std::map<std::string, std::string> contents(const std::filesystem::path& directory) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file())
      all[std::filesystem::relative(entry.path(), directory).string()] = read_file(entry.path());
  return all;
}

std::vector<WalRecord> wal_records(const std::string& wal) {
  constexpr size_t kBlockBytes = 32 * 1024;
  std::vector<WalRecord> records;
  for (size_t at = 0; at + kWalHeaderBytes <= wal.size();) {
    if (kBlockBytes - at % kBlockBytes < kWalHeaderBytes) {  // The end of a block is filled up with zeros.
      at += kBlockBytes - at % kBlockBytes;
      continue;
    }
    size_t payload = static_cast<unsigned char>(wal[at + 4]) | size_t{static_cast<unsigned char>(wal[at + 5])} << 8;
    records.push_back({at, payload});
    at += kWalHeaderBytes + payload;
  }
  return records;
}

}  // namespace millrace::store
