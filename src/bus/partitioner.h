#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace millrace::bus {

/// MurmurHash2 with the seed and finish of Kafka's Java client, so that a key lands in the partition that any Kafka
/// client would choose.
int32_t murmur2(ByteView key);

/// The partition of a keyed record, of `partitions` > 0.
uint32_t partition_of_key(ByteView key, uint32_t partitions);

}  // namespace millrace::bus
