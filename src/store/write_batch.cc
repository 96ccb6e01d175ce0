#include "store/write_batch.h"

#include <rocksdb/comparator.h>

#include <array>

#include "store/column_families.h"
#include "store/slice.h"

namespace millrace::store {
namespace {

class IdHandle final : public rocksdb::ColumnFamilyHandle {
 public:
  explicit IdHandle(Table table) : table_(table), name_(name_of(table)) {}
  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return column_family_id(table_); }
  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor*) override { return rocksdb::Status::NotSupported(); }
  const rocksdb::Comparator* GetComparator() const override { return rocksdb::BytewiseComparator(); }

 private:
  Table table_;
  std::string name_;
};

template <size_t... I>
std::array<IdHandle, sizeof...(I)> make_id_handles(std::index_sequence<I...>) {
  return {IdHandle(static_cast<Table>(I))...};
}

void must(const rocksdb::Status& status) {
  MILLRACE_ASSERT(status.ok(), "a write batch refused a row: " + status.ToString());
}

}  // namespace

rocksdb::ColumnFamilyHandle* id_handle(Table table) {
  static auto handles = make_id_handles(std::make_index_sequence<static_cast<size_t>(Table::kCount)>());
  return &handles[static_cast<size_t>(table)];
}

WriteBatch::WriteBatch() : impl_(std::make_unique<Impl>()) {}
WriteBatch::~WriteBatch() = default;
WriteBatch::WriteBatch(WriteBatch&&) noexcept = default;
WriteBatch& WriteBatch::operator=(WriteBatch&&) noexcept = default;

void WriteBatch::put(Table table, ByteView key, ByteView value) {
  must(impl_->batch.Put(id_handle(table), slice(key), slice(value)));
}

void WriteBatch::put(Table table, ByteView key, ByteView value_head, ByteView value_tail) {
  rocksdb::Slice key_part = slice(key);
  std::array<rocksdb::Slice, 2> value_parts = {slice(value_head), slice(value_tail)};
  must(impl_->batch.Put(id_handle(table), rocksdb::SliceParts(&key_part, 1),
                        rocksdb::SliceParts(value_parts.data(), static_cast<int>(value_parts.size()))));
}

void WriteBatch::erase(Table table, ByteView key) {
  must(impl_->batch.Delete(id_handle(table), slice(key)));
}

void WriteBatch::erase_range(Table table, ByteView from, ByteView to) {
  must(impl_->batch.DeleteRange(id_handle(table), slice(from), slice(to)));
}

void WriteBatch::clear() {
  impl_->batch.Clear();
}

uint64_t WriteBatch::rows() const {
  return impl_->batch.Count();
}

uint64_t WriteBatch::bytes() const {
  return impl_->batch.GetDataSize();
}

}  // namespace millrace::store
