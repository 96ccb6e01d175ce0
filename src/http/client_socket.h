#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"

namespace millrace::http {

/// Where a client connects to.
struct ServerAddress {
  std::string url;   ///< as given, for messages
  std::string host;  ///< "" for a Unix socket
  uint16_t port = 0;
  std::string path;  ///< of a Unix socket
  std::string host_field;

  /// INVALID_URL. See Client::create for the forms.
  static Result<ServerAddress> parse(std::string_view url);
};

/// A blocking stream socket with time-outs, for one thread; interrupt() may come from another.
class ClientSocket {
 public:
  explicit ClientSocket(ServerAddress address) : address_(std::move(address)) {}
  ~ClientSocket() { close(); }
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  /// CONNECT_FAILED with the system's word, INTERRUPTED.
  Status connect(std::chrono::milliseconds timeout);
  bool is_open() const { return fd_ >= 0; }
  /// An idle kept connection on which the server has ended or spoken out of turn.
  bool is_stale() const;
  void close() EXCLUDES(mutex_);
  void interrupt() EXCLUDES(mutex_);
  bool interrupted() const { return interrupted_.load(std::memory_order_acquire); }

  enum class Ready { kReadable, kWritable, kTimeout };
  /// Readable is preferred when both are.
  Ready wait(bool for_write, std::chrono::milliseconds timeout) const;
  /// Bytes moved; 0: would block; -1: lost (errno).
  ssize_t write(std::string_view head, std::string_view body) const;
  /// Bytes read; 0: end; -1: lost (errno); -2: would block.
  ssize_t read(char* into, size_t size) const;

  const ServerAddress& address() const { return address_; }

 private:
  Status connect_to(int family, const void* address, unsigned size, std::chrono::milliseconds timeout) EXCLUDES(mutex_);
  tl::unexpected<Error> failed(std::string_view why) const;

  const ServerAddress address_;
  int fd_ = -1;  ///< written under the mutex, by the client's thread
  mutable Mutex mutex_;
  std::atomic<bool> interrupted_{false};
};

}  // namespace millrace::http
