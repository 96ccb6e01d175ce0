#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

/// Zigzag variable-length integers as Kafka's records (and protobuf's sint) have them.
namespace millrace::bus {

void append_varint(Bytes& out, int64_t value);
/// Bytes that append_varint writes: 1 to 10.
size_t varint_bytes(int64_t value);

/// Takes an integer off the front of `rest`. Nullopt when it does not end within `rest` or has more bits than the
/// type; `rest` is then unspecified.
std::optional<int64_t> take_varlong(ByteView& rest);
std::optional<int32_t> take_varint(ByteView& rest);

}  // namespace millrace::bus
