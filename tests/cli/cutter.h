#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <thread>

namespace millrace::cli::tests {

/// A connection that breaks on demand: between the client and the node it passes whole requests and answers, one at a
/// time, and for each POST to /records takes the next fault.
class Cutter {
 public:
  enum class Fault {
    kNone,
    kBefore,  ///< the connection breaks before the node gets the request
    kAfter    ///< it breaks when the node has done the work, before the client hears of it
  };
  Cutter(uint16_t node_port, std::deque<Fault> faults);
  ~Cutter();

  std::string url() const;

 private:
  void loop();
  void serve(int client);

  const uint16_t node_port_;
  std::deque<Fault> faults_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace millrace::cli::tests
