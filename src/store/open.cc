#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <limits>

#include "store/column_families.h"
#include "store/rocks_options.h"
#include "store/rocks_store.h"
#include "store/slice.h"
#include "store/status.h"
#include "store/table_footer.h"
#include "store/wal_file_system.h"
#include "store/wal_tail.h"

namespace millrace::store {
namespace {

/// The row in `meta` that says which database this is; its value is a Uuid.
constexpr ByteView kEpochKey = "store/epoch";

Error damaged(const DataDirectory& directory, std::string_view what) {
  return {ErrorKind::kCorruption, "STORE_DAMAGED",
          fmt::format(
              "the store in {} is damaged: {}. Keep a copy of it and restore a backup, or, to go on without what is "
              "lost, start once with --accept-loss",
              directory.root.string(), what)};
}

std::function<uint64_t()> machine_free_bytes(const std::filesystem::path& directory) {
  return [directory]() -> uint64_t {
    struct statvfs info {};
    // A file system that does not answer is for the write itself to fail on.
    if (::statvfs(directory.c_str(), &info) != 0) return std::numeric_limits<uint64_t>::max();
    return info.f_bavail * info.f_frsize;
  };
}

/// What a recovery writes besides the rows of the log: a manifest, index and filter blocks of a file for each table.
constexpr uint64_t kRecoveryOverheadBytes = 8 << 20;

/// Opening, step by step. Each step returns the error that stops it.
class Opening {
 public:
  Opening(Options& options, DataDirectory directory, DirectoryLock lock, const SpaceGuard& space)
      : options_(options), directory_(std::move(directory)), open_(std::move(lock)), space_(space) {}

  Status run() {
    MILLRACE_TRY(load_witness());
    MILLRACE_TRY(check_footers());
    MILLRACE_TRY(read_logs());
    MILLRACE_TRY(check_space());
    MILLRACE_TRY(check_tables());
    for (const WalTail& log : logs_) MILLRACE_TRY(cut_off(log));
    MILLRACE_TRY(open_rocksdb());
    MILLRACE_TRY(check_table_ids());
    MILLRACE_TRY(check_epoch());
    MILLRACE_TRY(check_sequence());
    return begin();
  }
  OpenDatabase take() && { return std::move(open_); }

 private:
  Status load_witness();
  Status check_footers() const;
  Status read_logs();
  Result<uint64_t> sequence_of_tables() const;
  Status check_space();
  Status check_tables();
  void prepare_logs();
  Status open_rocksdb();
  Status check_table_ids();
  Status check_epoch();
  Status check_sequence();
  Status begin();
  Error refused(const rocksdb::Status& status) const;
  Status change_epoch();
  Status write_epoch(const Uuid& epoch);

  Options& options_;
  DataDirectory directory_;
  OpenDatabase open_;
  const SpaceGuard& space_;
  WitnessRecord witnessed_;
  bool new_epoch_ = false;
  std::vector<WalTail> logs_;
  std::vector<std::string> present_;  ///< column families on disk
};

Status Opening::load_witness() {
  bool exists = directory_.has_database();
  auto witness = Witness::load(directory_.witness());
  if (!witness && !(options_.accept_loss && exists)) return tl::unexpected<Error>(std::move(witness.error()));
  if (witness && *witness) {
    open_.witness = std::move(**witness);
    witnessed_ = open_.witness->record();
    if (!exists && witnessed_.sequence > 0)
      return tl::unexpected<Error>(damaged(
          directory_,
          fmt::format("{} is gone, which held rows up to {}", directory_.database().string(), witnessed_.sequence)));
  } else {
    // The witness is written before the database is created, and every copy gets one: it cannot be merely new.
    if (exists && !options_.accept_loss)
      return tl::unexpected<Error>(damaged(
          directory_, fmt::format("the witness page {} is missing, so nobody can tell whether the database is complete",
                                  directory_.witness().string())));
    witnessed_ = {0, Uuid::random(), {}, WitnessState::kOpen};
    new_epoch_ = exists;
    auto created = Witness::create(directory_.witness(), witnessed_);
    if (!created) return tl::unexpected<Error>(std::move(created.error()));
    open_.witness = std::move(*created);
  }
  open_.report.created = !exists;
  open_.report.clean_stop = witnessed_.state == WitnessState::kClosed;
  open_.report.witnessed_sequence = witnessed_.sequence;
  new_epoch_ = new_epoch_ || witnessed_.state == WitnessState::kCheckpoint;
  return {};
}

Status Opening::check_footers() const {
  Status sound = check_table_footers(directory_.database());
  if (sound || sound.error().kind != ErrorKind::kCorruption) return sound;
  return tl::unexpected<Error>(damaged(directory_, sound.error().message));
}

Status Opening::read_logs() {
  auto logs = read_wal_tails(directory_.database(), witnessed_.sequence);
  if (!logs) return tl::unexpected<Error>(std::move(logs.error()));
  logs_ = *std::move(logs);
  uint64_t last_sequence = 0;
  const WalTail* torn = nullptr;
  for (const WalTail& log : logs_) {
    if (!log.damage.empty() && !options_.accept_loss) return tl::unexpected<Error>(damaged(directory_, log.damage));
    open_.report.wal_bytes += log.end;
    open_.report.torn_bytes += log.torn_bytes;
    last_sequence = std::max(last_sequence, log.last_sequence);
    if (log.torn_bytes > 0) torn = &log;
  }
  if (torn == nullptr || options_.accept_loss || last_sequence >= witnessed_.sequence) return {};
  // The only write of its log: whether it is torn or damaged is for the tables to say, before anything is cut off.
  auto in_tables = sequence_of_tables();
  if (!in_tables) return tl::unexpected<Error>(std::move(in_tables.error()));
  if (std::max(last_sequence, *in_tables) >= witnessed_.sequence) return {};
  return tl::unexpected<Error>(
      damaged(directory_,
              fmt::format("its write-ahead log {} cannot be read at byte {}, after row {}, and rows up to {} were on "
                          "disk",
                          torn->file.string(), torn->end, std::max(last_sequence, *in_tables), witnessed_.sequence)));
}

/// The last sequence number that is in files of tables. Opens the database for reading, with its logs out of sight, and
/// leaves no trace.
Result<uint64_t> Opening::sequence_of_tables() const {
  rocksdb::DBOptions db_options;
  db_options.wal_dir = directory_.root.string();  // Where there are none.
  std::unique_ptr<rocksdb::Env> env;
  if (options_.file_system) {
    env = rocksdb::NewCompositeEnv(options_.file_system);
    db_options.env = env.get();
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> only_default = {
      {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions()}};
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  rocksdb::Status status =
      rocksdb::DB::OpenForReadOnly(db_options, directory_.database().string(), only_default, &handles, &opened);
  if (!status.ok()) return tl::unexpected<Error>(refused(status));
  std::unique_ptr<rocksdb::DB> db(opened);
  for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  return db->GetLatestSequenceNumber();
}

/// Recovery writes the rows of the log to files, and a disk that fills meanwhile may leave a manifest that does not
/// open again: better not to begin.
Status Opening::check_space() {
  uint64_t wanted = open_.report.wal_bytes + kRecoveryOverheadBytes;
  if (space_.free_bytes() >= wanted) return {};
  return fail(ErrorKind::kUnavailable, "DISK_RESERVE",
              fmt::format("the disk of the data directory {} has {} KiB free, and opening the store may take {} KiB; "
                          "nothing was touched; free some space",
                          directory_.root.string(), space_.free_bytes() >> 10, wanted >> 10));
}

Status Opening::check_tables() {
  if (open_.report.created) return {};
  rocksdb::DBOptions db;
  std::unique_ptr<rocksdb::Env> env;
  if (options_.file_system) {
    env = rocksdb::NewCompositeEnv(options_.file_system);
    db.env = env.get();
  }
  rocksdb::Status status = rocksdb::DB::ListColumnFamilies(db, directory_.database().string(), &present_);
  if (!status.ok()) return tl::unexpected<Error>(refused(status));
  for (const std::string& name : present_) {
    if (name == rocksdb::kDefaultColumnFamilyName) continue;
    if (std::find(kTableNames.begin(), kTableNames.end(), name) == kTableNames.end())
      return fail(ErrorKind::kUnsupported, "FORMAT_TOO_NEW",
                  fmt::format("the store in {} has a table '{}' that this binary does not know; nothing was touched; "
                              "start the version that wrote it",
                              directory_.root.string(), name));
  }
  return {};
}

/// Beneath what RocksDB writes from now on.
void Opening::prepare_logs() {
  if (options_.prepared_wal_bytes == 0) return remove_prepared_wal(directory_.next_wal());
  const uint64_t room = options_.reserve_bytes + 2 * options_.prepared_wal_bytes;
  WalFileSystem::Prepared prepared{directory_.next_wal().string(), open_.report.clean_stop, options_.prepared_wal_bytes,
                                   [free = options_.free_bytes, room] { return free() >= room; }};
  options_.file_system = std::make_shared<WalFileSystem>(
      options_.file_system ? options_.file_system : rocksdb::FileSystem::Default(), std::move(prepared));
}

Status Opening::open_rocksdb() {
  prepare_logs();
  // Compactions need space before they free any, and one that fails for lack of it ends the process.
  open_.compacting = space_.free_bytes() >= space_.reserve_bytes();
  RocksParts parts = rocks_parts(options_, open_.compacting);
  open_.file_system = options_.file_system;
  open_.env = std::move(parts.env);
  open_.errors = std::make_shared<BackgroundErrors>();
  parts.db.listeners.push_back(open_.errors);
  // Creation that was interrupted left a prefix of the tables; the rest is created in order below.
  size_t known = open_.report.created ? 1 : present_.size();
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors(parts.tables.begin(),
                                                           parts.tables.begin() + static_cast<ptrdiff_t>(known));
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  rocksdb::Status status =
      rocksdb::DB::Open(rocksdb::DBOptions(parts.db), directory_.database().string(), descriptors, &handles, &db);
  if (!status.ok()) return tl::unexpected<Error>(refused(status));
  open_.db.reset(db);
  for (auto* handle : handles) open_.handles.emplace_back(handle);
  if (known == parts.tables.size()) return {};
  std::vector<rocksdb::ColumnFamilyDescriptor> missing(parts.tables.begin() + static_cast<ptrdiff_t>(known),
                                                       parts.tables.end());
  std::vector<rocksdb::ColumnFamilyHandle*> created;
  status = db->CreateColumnFamilies(missing, &created);
  for (auto* handle : created) open_.handles.emplace_back(handle);
  if (!status.ok())
    return tl::unexpected<Error>(
        damage_or_io(status, fmt::format("cannot create the tables in {}", directory_.database().string())));
  return {};
}

/// Why RocksDB does not open. A file that it names and that is not there is damage as well.
Error Opening::refused(const rocksdb::Status& status) const {
  if (status.IsCorruption() || status.IsPathNotFound() || status.IsNotFound())
    return damaged(directory_, status.ToString());
  return damage_or_io(status, fmt::format("cannot open {}", directory_.database().string()));
}

Status Opening::check_table_ids() {
  for (uint32_t id = 0; id < open_.handles.size(); ++id)
    if (open_.handles[id]->GetID() != id)
      return tl::unexpected<Error>(
          damaged(directory_, fmt::format("table {} has id {} instead of {}", open_.handles[id]->GetName(),
                                          open_.handles[id]->GetID(), id)));
  open_.report.recovered_sequence = open_.db->GetLatestSequenceNumber();
  return {};
}

Status Opening::check_epoch() {
  std::string found;
  rocksdb::ReadOptions read;
  auto* meta = open_.handles[column_family_id(Table::kMeta)].get();
  rocksdb::Status status = open_.db->Get(read, meta, slice(kEpochKey), &found);
  if (status.IsNotFound()) {
    if (witnessed_.sequence > 0 && !options_.accept_loss)
      return tl::unexpected<Error>(damaged(directory_, "the row that names its epoch is missing"));
    return write_epoch(witnessed_.epoch);
  }
  if (!status.ok()) return tl::unexpected<Error>(read_error(status, Table::kMeta, kEpochKey));
  if (found == witnessed_.epoch.view() || (new_epoch_ && found == witnessed_.successor.view())) return {};
  if (options_.accept_loss) {
    new_epoch_ = true;
    return {};
  }
  return tl::unexpected<Error>(
      damaged(directory_, fmt::format("the database and the witness page are of two different databases (epochs {} and "
                                      "{}): files were mixed up",
                                      to_hex(found), to_hex(witnessed_.epoch.view()))));
}

Status Opening::check_sequence() {
  if (open_.report.recovered_sequence >= witnessed_.sequence) return {};
  if (options_.accept_loss) {
    new_epoch_ = true;
    return {};
  }
  return tl::unexpected<Error>(
      damaged(directory_, fmt::format("rows up to {} were on disk, but only those up to {} were recovered",
                                      witnessed_.sequence, open_.report.recovered_sequence)));
}

Status Opening::write_epoch(const Uuid& epoch) {
  rocksdb::WriteOptions options;
  options.sync = true;
  auto* meta = open_.handles[column_family_id(Table::kMeta)].get();
  rocksdb::Status status = open_.db->Put(options, meta, slice(kEpochKey), slice(epoch.view()));
  if (!status.ok()) return tl::unexpected<Error>(damage_or_io(status, "cannot write the database's epoch"));
  return {};
}

/// First the witness names the new epoch, then the database takes it: an interruption in between is understood.
Status Opening::change_epoch() {
  witnessed_.successor = Uuid::random();
  witnessed_.state = WitnessState::kCheckpoint;
  MILLRACE_TRY(open_.witness->write(witnessed_, Witness::Sync::kToDisk));
  MILLRACE_TRY(write_epoch(witnessed_.successor));
  witnessed_.epoch = witnessed_.successor;
  return {};
}

Status Opening::begin() {
  if (new_epoch_) MILLRACE_TRY(change_epoch());
  witnessed_.successor = {};
  witnessed_.state = WitnessState::kOpen;
  // What was recovered has been written to files and synced by now.
  witnessed_.sequence = open_.db->GetLatestSequenceNumber();
  return open_.witness->write(witnessed_, Witness::Sync::kToDisk);
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(Options options) {
  options.directory = std::filesystem::absolute(options.directory);
  DataDirectory directory{options.directory};
  auto lock = claim(directory);
  if (!lock) return tl::unexpected<Error>(std::move(lock.error()));
  if (!options.free_bytes) options.free_bytes = machine_free_bytes(options.directory);
  auto space = std::make_unique<SpaceGuard>(options.reserve_bytes, options.free_bytes);
  space->look();
  Opening opening(options, directory, std::move(*lock), *space);
  MILLRACE_TRY(opening.run());
  MILLRACE_TRY(raise_format(directory));
  return std::make_unique<RocksStore>(std::move(options), std::move(opening).take(), std::move(space));
}

}  // namespace millrace::store
