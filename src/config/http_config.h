#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/value.h"

namespace millrace::config {

/// [http]: the API's listeners and their limits. Keys and their meaning: http_config.cc.
struct HttpConfig {
  std::vector<Endpoint> listen = {Endpoint{"127.0.0.1", 8080}};
  std::filesystem::path unix_socket;  ///< absolute once loaded, or "none": see unix_socket_path()
  uint32_t io_threads = 2;
  uint32_t max_connections = 2048;
  uint32_t max_connections_per_address = 1536;
  uint64_t max_header_bytes = 8ull << 10;
  uint64_t max_body_bytes = 16ull << 20;
  uint64_t max_body_memory_bytes = 64ull << 20;  ///< of all requests that are being read or answered
  std::chrono::milliseconds request_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(60);
  std::chrono::milliseconds write_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds drain_timeout = std::chrono::seconds(10);
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allowed_origins;

  /// Where to listen besides `listen`; nullopt when it is switched off.
  std::optional<std::filesystem::path> unix_socket_path() const {
    if (unix_socket == "none") return std::nullopt;
    return unix_socket;
  }
};

}  // namespace millrace::config
