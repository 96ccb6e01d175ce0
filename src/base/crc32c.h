#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace millrace {

/// CRC-32C (Castagnoli), as Kafka's RecordBatch v2 and RFC 3720 define it; hardware-accelerated by ISA-L.
/// `seed` is the CRC of what came before, 0 at the start.
uint32_t crc32c(ByteView data, uint32_t seed = 0);

}  // namespace millrace
