#include "bus/varint.h"

#include <bit>
#include <limits>

namespace millrace::bus {
namespace {

uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

}  // namespace

void append_varint(Bytes& out, int64_t value) {
  uint64_t rest = zigzag(value);
  while (rest >= 0x80) {
    out += static_cast<char>(rest | 0x80);
    rest >>= 7;
  }
  out += static_cast<char>(rest);
}

size_t varint_bytes(int64_t value) {
  return (static_cast<size_t>(std::bit_width(zigzag(value) | 1)) + 6) / 7;
}

std::optional<int64_t> take_varlong(ByteView& rest) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest.empty()) return std::nullopt;
    auto byte = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    if (shift == 63 && byte > 1) return std::nullopt;  // Bits beyond the 64th.
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  return std::nullopt;
}

std::optional<int32_t> take_varint(ByteView& rest) {
  auto value = take_varlong(rest);
  if (!value || *value < std::numeric_limits<int32_t>::min() || *value > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return static_cast<int32_t>(*value);
}

}  // namespace millrace::bus
