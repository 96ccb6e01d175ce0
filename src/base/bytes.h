#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

/// Byte strings and big-endian integers. Keys on disk are big-endian so that their byte order is their numeric
/// order; Kafka's batches are big-endian as well.
namespace millrace {

using Bytes = std::string;
using ByteView = std::string_view;

template <typename T>
constexpr T to_big_endian(T value) {
  static_assert(std::is_integral_v<T>);
  if constexpr (sizeof(T) == 1 || std::endian::native == std::endian::big) return value;
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(static_cast<uint16_t>(value)));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(static_cast<uint32_t>(value)));
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(static_cast<uint64_t>(value)));
}

/// Reads T at `data`; the caller has checked that sizeof(T) bytes are there.
template <typename T>
T load_be(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return to_big_endian(value);
}

template <typename T>
void store_be(char* data, T value) {
  value = to_big_endian(value);
  std::memcpy(data, &value, sizeof value);
}

template <typename T>
void append_be(Bytes& out, T value) {
  value = to_big_endian(value);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The smallest key greater than every key with this prefix; empty when there is none (all bytes 0xff).
Bytes prefix_end(ByteView prefix);

/// Lower-case hexadecimal, for messages.
std::string to_hex(ByteView bytes);

}  // namespace millrace
