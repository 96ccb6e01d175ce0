#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

/// How one value is written: in the properties file, on the command line and in the HTTP API alike. Each parse_x takes
/// exactly what its format_x writes, and a little more where said; surrounding blanks are the caller's to remove.
namespace millrace::config {

/// The value, or a sentence part that says what is wrong with the text ("'30' has no unit; write 30s or another of
/// ...").
template <typename T>
using Parsed = tl::expected<T, std::string>;
using Wrong = tl::unexpected<std::string>;

/// "true" or "false".
Parsed<bool> parse_bool(std::string_view text);
std::string format_bool(bool value);

/// A whole number. Thousands may be set apart as Catapult's files do: 4'096; format_integer does so.
Parsed<uint64_t> parse_integer(std::string_view text);
std::string format_integer(uint64_t value);

/// A size in bytes with its unit: B, KB, MB, GB, TB. 1 KB is 1024 B, as in Catapult.
Parsed<uint64_t> parse_size(std::string_view text);
std::string format_size(uint64_t bytes);

/// A duration with its unit: ms, s, m, h, d.
Parsed<std::chrono::milliseconds> parse_duration(std::string_view text);
std::string format_duration(std::chrono::milliseconds value);

/// An address to listen on: "127.0.0.1:8080", "[::1]:8080". Port 0 lets the kernel choose. Host names are not resolved.
struct Endpoint {
  std::string address;  ///< IPv4 or IPv6, as inet_ntop writes it
  uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;

  bool is_ipv6() const { return address.find(':') != std::string::npos; }
  /// Reachable from this machine only (127.0.0.0/8, ::1, and the former mapped into IPv6).
  bool is_loopback() const;
};
Parsed<Endpoint> parse_endpoint(std::string_view text);
std::string format_endpoint(const Endpoint& endpoint);

/// Digits alone, 0 to 65535.
std::optional<uint16_t> parse_port(std::string_view text);

/// "a, b, c". An empty text is an empty list; an empty item is a fault.
Parsed<std::vector<std::string_view>> split_list(std::string_view text);

std::string_view trim(std::string_view text);

/// 'text', safe to print: cut at 60 bytes, control characters and broken UTF-8 shown as \xNN.
std::string show(std::string_view text);

}  // namespace millrace::config
