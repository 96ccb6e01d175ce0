#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::tests {

/// A client socket that sends exactly the bytes it is given, for what a well-behaved client library would not send.
/// Time-outs only keep a failing test from hanging: running into one throws.
class RawSocket {
 public:
  static RawSocket tcp(uint16_t port, const std::string& address = "127.0.0.1");
  static RawSocket unix_socket(const std::filesystem::path& path);
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&&) = delete;

  /// False when the other side no longer takes bytes.
  bool send(std::string_view bytes);
  /// What one write takes without blocking; 0 when the socket is full or broken.
  size_t send_some(std::string_view bytes);
  void shutdown_write();
  void close();
  /// Closes with a reset.
  void abort();

  struct Answer {
    int status = 0;
    std::string head;  ///< status line and fields, without the empty line
    std::string body;  ///< by Content-Length; what is chunked stays as it is, up to the last chunk

    /// The value of a field; "" when it is not there.
    std::string field(std::string_view name) const;
  };
  /// One answer; nothing at the end of the connection. `head_only`: to a HEAD request.
  std::optional<Answer> read_answer(bool head_only = false);
  /// Up to and with `marker`, or to the end of the connection.
  std::string read_until(std::string_view marker);
  /// To the end of the connection.
  std::string read_all();
  /// Whether the end seen was a reset.
  bool was_reset() const { return reset_; }
  int fd() const { return fd_; }

  static constexpr std::chrono::seconds kPatience{60};

 private:
  explicit RawSocket(int fd) : fd_(fd) {}
  /// False at the end.
  bool fill();

  int fd_;
  std::string buffer_;
  bool reset_ = false;
};

}  // namespace millrace::tests
