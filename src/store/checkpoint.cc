#include <fmt/format.h>
#include <rocksdb/utilities/checkpoint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "store/rocks_store.h"
#include "store/status.h"

namespace millrace::store {
namespace {

/// Fills the directory `into`, which exists and is empty.
Status fill(rocksdb::DB* db, const DataDirectory& into, const WitnessRecord& record) {
  MILLRACE_TRY(write_file_durably(into.format(), format_file_content()));
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(db, &made);
  std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  // 0: flush first, so that the copy needs no replay.
  if (status.ok()) status = checkpoint->CreateCheckpoint(into.database().string(), 0);
  if (!status.ok())
    return tl::unexpected<Error>(damage_or_io(status, fmt::format("cannot copy to {}", into.database().string())));
  auto witness = Witness::create(into.witness(), record);
  if (!witness) return tl::unexpected<Error>(std::move(witness.error()));
  return {};
}

}  // namespace

Status RocksStore::checkpoint(const std::filesystem::path& to) {
  if (::access(to.c_str(), F_OK) == 0)
    return fail(ErrorKind::kAlreadyExists, "CHECKPOINT_EXISTS",
                fmt::format("{} exists already; name a new directory", to.string()));
  if (errors().failed()) return tl::unexpected<Error>(unknown_error(errors().reason()));
  // What is vouched for now is in the copy; more may be.
  WitnessRecord record{
      synced_.load(std::memory_order_acquire), database_.witness->record().epoch, {}, WitnessState::kCheckpoint};
  DataDirectory partial{to};
  partial.root += ".incomplete";
  std::error_code ignored;  // What an interrupted one left; a failure shows at mkdir.
  std::filesystem::remove_all(partial.root, ignored);
  if (::mkdir(partial.root.c_str(), 0700) != 0) return io_error("cannot create", partial.root);
  Status filled = fill(&db(), partial, record);
  if (!filled) {
    std::filesystem::remove_all(partial.root, ignored);
    return filled;
  }
  if (::rename(partial.root.c_str(), to.c_str()) != 0) return io_error("cannot rename to", to);
  return sync_directory(std::filesystem::absolute(to).parent_path());
}

}  // namespace millrace::store
