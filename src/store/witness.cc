#include "store/witness.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "base/files.h"

namespace millrace::store {
namespace {

constexpr uint64_t kMagic = 0x314e5449574c524d;  // "MRLWITN1"
constexpr size_t kSlotBytes = 4096;              // A page each: no sector holds both.
constexpr size_t kSlots = 2;
constexpr size_t kFileBytes = kSlots * kSlotBytes;

/// One slot as it lies in the file, in the machine's byte order (x86-64: little-endian).
struct Slot {
  uint64_t magic;
  uint64_t generation;
  uint64_t sequence;
  Uuid epoch;
  Uuid successor;
  uint32_t state;
  uint32_t crc;  ///< CRC-32C of everything before it
};
static_assert(sizeof(Slot) == 64 && offsetof(Slot, crc) == 60);

uint32_t crc_of(const Slot& slot) {
  return crc32c({reinterpret_cast<const char*>(&slot), offsetof(Slot, crc)});
}

bool valid(const Slot& slot) {
  return slot.magic == kMagic && slot.crc == crc_of(slot) && slot.state >= 1 && slot.state <= 3;
}

Slot read_slot(const void* map, size_t index) {
  Slot slot;
  std::memcpy(&slot, static_cast<const char*>(map) + index * kSlotBytes, sizeof slot);
  return slot;
}

Slot make_slot(const WitnessRecord& record, uint64_t generation) {
  Slot slot{kMagic, generation, record.sequence, record.epoch, record.successor, static_cast<uint32_t>(record.state),
            0};
  slot.crc = crc_of(slot);
  return slot;
}

}  // namespace

Result<Witness> Witness::create(const std::filesystem::path& path, const WitnessRecord& record) {
  // Both slots valid from the start: a file in which neither is was damaged, never merely new.
  std::string content(kFileBytes, '\0');
  for (size_t i = 0; i < kSlots; ++i) {
    Slot slot = make_slot(record, kSlots + i);
    std::memcpy(content.data() + i * kSlotBytes, &slot, sizeof slot);
  }
  MILLRACE_TRY(write_file_durably(path, content));
  auto witness = load(path);
  if (!witness) return tl::unexpected<Error>(std::move(witness.error()));
  return std::move(**witness);
}

Result<Witness> Witness::map(const std::filesystem::path& path) {
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return io_error("cannot open", path);
  struct stat info {};
  bool whole = ::fstat(fd, &info) == 0 && info.st_size == static_cast<off_t>(kFileBytes);
  void* map = whole ? ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  int error = errno;
  ::close(fd);
  if (!whole)
    return fail(ErrorKind::kCorruption, "STORE_DAMAGED",
                fmt::format("the witness page {} has {} bytes instead of {}", path.string(), info.st_size, kFileBytes));
  if (map == MAP_FAILED) {
    errno = error;
    return io_error("cannot map", path);
  }
  return Witness(path, map);
}

Result<std::optional<Witness>> Witness::load(const std::filesystem::path& path) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::nullopt;
  auto witness = map(path);
  if (!witness) return tl::unexpected<Error>(std::move(witness.error()));
  for (size_t i = 0; i < kSlots; ++i) {
    Slot slot = read_slot(witness->map_, i);
    if (!valid(slot) || slot.generation <= witness->generation_) continue;
    witness->generation_ = slot.generation;
    witness->record_ = {slot.sequence, slot.epoch, slot.successor, static_cast<WitnessState>(slot.state)};
  }
  if (witness->generation_ == 0)
    return fail(ErrorKind::kCorruption, "STORE_DAMAGED",
                fmt::format("the witness page {} is damaged: neither of its two slots is valid", path.string()));
  return std::optional<Witness>(std::move(*witness));
}

Witness::Witness(Witness&& other) noexcept
    : path_(std::move(other.path_)),
      map_(std::exchange(other.map_, nullptr)),
      generation_(other.generation_),
      record_(other.record_) {}

Witness& Witness::operator=(Witness&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(map_, other.map_);
  generation_ = other.generation_;
  record_ = other.record_;
  return *this;
}

Witness::~Witness() {
  if (map_ != nullptr) ::munmap(map_, kFileBytes);
}

void Witness::store(const WitnessRecord& record) {
  record_ = record;
  ++generation_;
  Slot slot = make_slot(record, generation_);
  std::memcpy(static_cast<char*>(map_) + generation_ % kSlots * kSlotBytes, &slot, sizeof slot);
}

Status Witness::write(const WitnessRecord& record, Sync sync) {
  store(record);
  if (sync == Sync::kToDisk && ::msync(map_, kFileBytes, MS_SYNC) != 0) return io_error("cannot sync", path_);
  return {};
}

void Witness::advance(uint64_t sequence) {
  WitnessRecord next = record_;
  next.sequence = sequence;
  store(next);
}

Status Witness::verify() const {
  Slot slot = read_slot(map_, generation_ % kSlots);
  if (valid(slot) && slot.generation == generation_ && slot.sequence == record_.sequence && slot.epoch == record_.epoch)
    return {};
  return fail(ErrorKind::kCorruption, "STORE_DAMAGED",
              fmt::format("the witness page {} does not hold what was written to it last", path_.string()));
}

}  // namespace millrace::store
