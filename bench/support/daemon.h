#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace::bench {

/// The real daemon on a data directory, as a user would run it, on a port that the system chose. Its log goes to
/// <data>.log. Whatever fails ends the bench with a message. One thread; the daemon is killed with this object.
class Daemon {
 public:
  /// Returns when the node says that it is ready.
  Daemon(const std::filesystem::path& binary, std::filesystem::path data, std::vector<std::string> more = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  pid_t pid() const { return pid_; }
  uint16_t port() const { return port_; }
  /// From before the program is started until the node answered that it is ready.
  double ready_seconds() const { return ready_seconds_; }

  /// Resident memory now, and CPU time since it was started.
  double rss_mb() const;
  double cpu_seconds() const;

  void kill();
  /// SIGTERM and wait.
  void stop();

  /// Sends a request with a JSON body (empty: none); anything but a 2xx ends the bench.
  std::string must(const std::string& method, const std::string& target, const std::string& body = "");

 private:
  bool is_ready() const;
  void end(int signal);

  const std::filesystem::path data_;
  pid_t pid_ = -1;
  uint16_t port_ = 0;
  double ready_seconds_ = 0;
};

/// A port of the loopback that nobody listens on now.
uint16_t free_port();

}  // namespace millrace::bench
