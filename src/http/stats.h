#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace millrace::http {

/// Why a connection or a request was turned away before a handler saw it.
enum class Rejected : uint8_t {
  kBadRequest,
  kHeaderTooLarge,
  kBodyTooLarge,
  kTimeout,
  kHost,
  kOrigin,
  kContentType,
  kNotFound,
  kMethod,
  kParameter,
  kBodyMemory,
  kTooManyConnections,
  kTooManyFromAddress,
  kNoDescriptors,
  kCount
};
std::string_view to_string(Rejected reason);

/// Counters of the whole server. Any thread adds and reads; each counter is exact, together they are not a snapshot.
struct Stats {
  using Counter = std::atomic<uint64_t>;

  Counter connections_opened{0};
  Counter connections_closed{0};
  Counter bytes_in{0};
  Counter bytes_out{0};
  Counter requests{0};                       ///< handed to a handler
  std::array<Counter, 6> responses{};        ///< by status / 100
  std::atomic<int64_t> in_flight{0};         ///< requests whose answer is not yet given
  std::atomic<int64_t> streams{0};           ///< open ByteStreams
  std::atomic<int64_t> body_bytes{0};        ///< of Options::max_body_bytes_in_flight
  std::atomic<int64_t> paused_listeners{0};  ///< now
  Counter accept_pauses{0};                  ///< out of descriptors or memory: accepting paused
  std::array<Counter, static_cast<size_t>(Rejected::kCount)> rejected{};

  void reject(Rejected reason) { rejected[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed); }
  uint64_t connections() const { return connections_opened.load() - connections_closed.load(); }
};

}  // namespace millrace::http
