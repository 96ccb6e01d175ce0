#include "store/snapshot.h"

#include "store/slice.h"
#include "store/status.h"

namespace millrace::store {
namespace {

class RocksCursor final : public Cursor {
 public:
  RocksCursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle, const rocksdb::Snapshot* snapshot, Table table,
              ByteView lower, ByteView upper)
      : table_(table), lower_(lower), upper_(upper), lower_slice_(lower_), upper_slice_(upper_) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    options.iterate_lower_bound = &lower_slice_;
    if (!upper_.empty()) options.iterate_upper_bound = &upper_slice_;
    iterator_.reset(db->NewIterator(options, handle));
  }

  void seek(ByteView key) override {
    last_key_ = key;
    iterator_->Seek(slice(key));
  }
  void seek_for_prev(ByteView key) override {
    last_key_ = key;
    iterator_->SeekForPrev(slice(key));
  }
  void seek_to_first() override {
    last_key_ = lower_;
    iterator_->SeekToFirst();
  }
  void seek_to_last() override {
    last_key_ = lower_;
    iterator_->SeekToLast();
  }
  void next() override {
    last_key_ = key();
    iterator_->Next();
  }
  void prev() override {
    last_key_ = key();
    iterator_->Prev();
  }
  bool valid() const override { return iterator_->Valid(); }
  ByteView key() const override { return view(iterator_->key()); }
  ByteView value() const override { return view(iterator_->value()); }
  Status status() const override {
    rocksdb::Status status = iterator_->status();
    if (status.ok()) return {};
    return tl::unexpected<Error>(read_error(status, table_, last_key_));
  }

 private:
  Table table_;
  Bytes lower_, upper_;
  rocksdb::Slice lower_slice_, upper_slice_;
  Bytes last_key_;  ///< where the last move started from, for the message when it met damage
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

}  // namespace

RocksSnapshot::RocksSnapshot(rocksdb::DB* db, const TableHandles& tables, std::atomic<int>& live)
    : db_(db), tables_(tables), live_(live), snapshot_(db->GetSnapshot()) {
  live_.fetch_add(1, std::memory_order_relaxed);
}

RocksSnapshot::~RocksSnapshot() {
  db_->ReleaseSnapshot(snapshot_);
  live_.fetch_sub(1, std::memory_order_release);
}

Result<std::optional<Bytes>> RocksSnapshot::get(Table table, ByteView key) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  Bytes value;
  rocksdb::Status status = db_->Get(options, tables_[static_cast<size_t>(table)], slice(key), &value);
  if (status.ok()) return value;
  if (status.IsNotFound()) return std::nullopt;
  return tl::unexpected<Error>(read_error(status, table, key));
}

std::unique_ptr<Cursor> RocksSnapshot::scan(Table table, ByteView lower, ByteView upper) const {
  return std::make_unique<RocksCursor>(db_, tables_[static_cast<size_t>(table)], snapshot_, table, lower, upper);
}

}  // namespace millrace::store
