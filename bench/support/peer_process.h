#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/result.h"

namespace millrace::bench {

/// A peer that runs as a child process and measures a window for each line it is sent. It is idle in between, so that
/// its windows and ours can alternate within one run. One thread; the child ends with this object.
class PeerProcess {
 public:
  static Result<PeerProcess> start(const std::vector<std::string>& command);
  PeerProcess(PeerProcess&& other) noexcept;
  PeerProcess& operator=(PeerProcess&&) = delete;
  ~PeerProcess();

  /// Sends a line and waits for the line that answers it.
  Result<std::string> ask(const std::string& line);

 private:
  PeerProcess(pid_t pid, std::FILE* to, std::FILE* from) : pid_(pid), to_(to), from_(from) {}
  pid_t pid_;
  std::FILE* to_;
  std::FILE* from_;
};

}  // namespace millrace::bench
