#include "base/crc32c.h"

#include <isa-l/crc.h>

namespace millrace {

uint32_t crc32c(ByteView data, uint32_t seed) {
  // crc32_iscsi neither pre- nor post-inverts, and takes a non-const pointer it only reads.
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
  return ~crc32_iscsi(bytes, static_cast<int>(data.size()), ~seed);
}

}  // namespace millrace
