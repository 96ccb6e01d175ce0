#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace::http {

using std::chrono::milliseconds;

/// Where to listen, whom to let in, and every bound of the HTTP server. Plain values; the daemon fills them from its
/// configuration.
struct Options {
  /// "127.0.0.1:8480", "[::1]:8480", "localhost:8480" (both loopback addresses); port 0 lets the system choose.
  std::vector<std::string> listen = {"127.0.0.1:8480"};
  /// Empty: none. Made with mode 0660.
  std::filesystem::path unix_socket;
  /// A listen address that is not loopback is refused while this is false.
  bool authenticated = false;
  /// Host names beside the loopback ones that a TCP request may carry: "millrace.lan" or "millrace.lan:8480".
  std::vector<std::string> allowed_hosts;
  /// Origins beside the server's own: "https://console.example". They get CORS headers.
  std::vector<std::string> allowed_origins;
  /// 0: half the cores, at least 1, at most 4.
  size_t io_threads = 0;

  size_t max_header_bytes = 8 * 1024;  ///< request line and fields
  size_t max_header_fields = 100;
  size_t max_target_bytes = 4 * 1024;
  size_t max_body_bytes = 16 * 1024 * 1024;
  /// Bodies being received or handled, over all connections; counted as they come.
  size_t max_body_bytes_in_flight = 128 * 1024 * 1024;
  size_t max_connections = 4096;
  /// All local clients share one address, so this leaves room for others only when it is below max_connections.
  /// The Unix socket does not count.
  size_t max_connections_per_address = 3072;
  size_t max_requests_per_connection = 0;  ///< 0: no bound
  int listen_backlog = 1024;

  milliseconds request_deadline{30'000};  ///< first byte of the header to last byte of the body
  milliseconds idle_timeout{75'000};      ///< between requests, and before the first
  milliseconds write_timeout{30'000};     ///< the client takes nothing for that long
  milliseconds linger_timeout{2'000};     ///< how long a refused client may take to read why
};

}  // namespace millrace::http
