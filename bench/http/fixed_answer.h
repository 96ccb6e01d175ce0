#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace millrace::bench {

/// The loopback's limit: one thread that answers whatever one read brings with the same bytes, without looking at it.
/// No HTTP server on one thread is quicker.
class FixedAnswer {
 public:
  explicit FixedAnswer(std::string answer);
  ~FixedAnswer();

  uint16_t port() const { return port_; }
  /// CPU time of the thread so far.
  double cpu_seconds() const;

 private:
  void run();

  const std::string answer_;
  int listener_ = -1, epoll_ = -1, stop_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace millrace::bench
