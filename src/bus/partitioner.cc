#include "bus/partitioner.h"

namespace millrace::bus {

int32_t murmur2(ByteView key) {
  constexpr uint32_t kSeed = 0x9747b28c, kMultiplier = 0x5bd1e995;
  constexpr int kShift = 24;
  auto length = static_cast<uint32_t>(key.size());
  auto byte_at = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(key[i])); };

  uint32_t hash = kSeed ^ length;
  size_t whole = key.size() & ~size_t{3};
  for (size_t i = 0; i < whole; i += 4) {
    uint32_t word = byte_at(i) | byte_at(i + 1) << 8 | byte_at(i + 2) << 16 | byte_at(i + 3) << 24;
    word *= kMultiplier;
    word ^= word >> kShift;
    word *= kMultiplier;
    hash = hash * kMultiplier ^ word;
  }
  if (size_t tail = key.size() - whole; tail > 0) {
    for (size_t i = 0; i < tail; ++i) hash ^= byte_at(whole + i) << (8 * i);
    hash *= kMultiplier;
  }
  hash ^= hash >> 13;
  hash *= kMultiplier;
  hash ^= hash >> 15;
  return static_cast<int32_t>(hash);
}

uint32_t partition_of_key(ByteView key, uint32_t partitions) {
  return (static_cast<uint32_t>(murmur2(key)) & 0x7fffffff) % partitions;
}

}  // namespace millrace::bus
