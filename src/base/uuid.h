#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// A random (version 4) UUID, RFC 9562. Sixteen bytes, compared as bytes.
struct Uuid {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const Uuid&, const Uuid&) = default;

  /// From the kernel's random source.
  static Uuid random();
  /// "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
  std::string to_string() const;
  static std::optional<Uuid> parse(std::string_view text);
  /// The raw bytes, as stored.
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

}  // namespace millrace
