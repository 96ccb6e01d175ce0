#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/result.h"
#include "base/uuid.h"

namespace millrace::store {

enum class WitnessState : uint32_t {
  kOpen = 1,        ///< a store is open on the directory, or was killed
  kClosed = 2,      ///< close() flushed everything
  kCheckpoint = 3,  ///< the directory is a copy that was never opened; opening it begins a new epoch
};

/// What the witness vouches for.
struct WitnessRecord {
  /// Every row up to this sequence number was on disk when this was written.
  uint64_t sequence = 0;
  /// Which database this is about. The same id lies in the database: a mixed-up directory is noticed.
  Uuid epoch;
  /// While a new epoch begins, the id that replaces `epoch`; else all zero.
  Uuid successor;
  WitnessState state = WitnessState::kOpen;
};

/// The witness page: a memory-mapped file beside the database that says how far it was synced. RocksDB cannot tell a
/// damaged end of its log from a torn one, which it may drop; with the witness it can be told apart: recovering less
/// than what was vouched for is damage.
///
/// Two slots, a page each, are written in turn, so that a kill in the middle of a store leaves the other one valid.
/// Only record(..., kToDisk) syncs: the kernel keeps the page when the process is killed, and after a loss of power an
/// older page only vouches for less. Written after the sync returned, never before.
///
/// Owned by the store; one thread at a time.
class Witness {
 public:
  enum class Sync { kNo, kToDisk };

  /// Writes a new file. Errors: kIo FILE_IO.
  static Result<Witness> create(const std::filesystem::path& path, const WitnessRecord& record);
  /// nullopt when there is no file. Errors: kCorruption STORE_DAMAGED when neither slot is valid, kIo FILE_IO.
  static Result<std::optional<Witness>> load(const std::filesystem::path& path);

  Witness(Witness&& other) noexcept;
  Witness& operator=(Witness&& other) noexcept;
  ~Witness();

  const WitnessRecord& record() const { return record_; }
  /// Errors only with kToDisk: kIo FILE_IO.
  Status write(const WitnessRecord& record, Sync sync);
  /// What write() does to a page in memory, for the hot path.
  void advance(uint64_t sequence);
  /// Reads both slots again. Errors: kCorruption when the newest slot is not what was written last.
  Status verify() const;

 private:
  Witness(std::filesystem::path path, void* map) : path_(std::move(path)), map_(map) {}
  static Result<Witness> map(const std::filesystem::path& path);
  void store(const WitnessRecord& record);

  std::filesystem::path path_;
  void* map_;
  uint64_t generation_ = 0;  ///< of the slot written last; the newest valid slot wins
  WitnessRecord record_;
};

}  // namespace millrace::store
