#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace millrace::tests {

/// How a process ended: one of the two is set.
struct ExitStatus {
  std::optional<int> code;
  std::optional<int> signal;
};
/// "exit code 78" or "signal 9 (Killed)".
std::string to_string(const ExitStatus& status);
/// For EXPECT_EQ's message.
void PrintTo(const ExitStatus& status, std::ostream* out);
inline bool operator==(const ExitStatus& a, const ExitStatus& b) {
  return a.code == b.code && a.signal == b.signal;
}
inline ExitStatus exited(int code) {
  return {code, std::nullopt};
}
inline ExitStatus killed_by(int signal) {
  return {std::nullopt, signal};
}

/// A child process with its output captured. Whatever happens to the test, the child does not outlive it: its process
/// group gets SIGKILL when it ends or the Process is destroyed, and the kernel kills the child when the thread that
/// spawned it ends (so spawn from a thread that stays). All waits have a deadline; none polls. One thread at a time.
class Process {
 public:
  /// More than a test should ever wait; reached only when something hangs.
  static constexpr std::chrono::seconds kPatience{60};

  struct Options {
    std::vector<std::string> arguments = {};  ///< argv[0] is the program's path and not in here
    /// Added to the test's own environment; an empty optional removes the variable.
    std::map<std::string, std::optional<std::string>> environment = {};
    std::filesystem::path working_directory = {};  ///< empty: the test's own
    std::string input = {};                        ///< what standard input holds; then it ends
    std::map<int, uint64_t> limits = {};           ///< RLIMIT_x -> both its limits
  };

  /// Throws std::system_error when the program cannot be run.
  Process(const std::filesystem::path& program, Options options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  /// To the process itself. False when it has ended already (then nothing is sent, not even to a reused pid).
  bool send(int signal);

  /// Waits for the end, and for all output to have arrived. nullopt when the patience ran out.
  std::optional<ExitStatus> wait(std::chrono::milliseconds patience = kPatience);
  /// SIGKILL and wait.
  ExitStatus kill();
  /// SIGTERM and wait; kills when the patience runs out and answers with that.
  ExitStatus stop(std::chrono::milliseconds patience = kPatience);
  /// True until wait(), kill() or stop() has seen the end or the process has ended unseen.
  bool running();

  /// What it wrote so far; the last kKeptOutput bytes of each.
  std::string out() const;
  std::string err() const;
  static constexpr size_t kKeptOutput = 4 << 20;

  /// Waits until what it wrote to standard error (from byte `from` on) contains the text; false when it ended without,
  /// or the patience ran out.
  bool wait_for_err(const std::string& text, size_t from = 0, std::chrono::milliseconds patience = kPatience);
  /// The port of the first "listening on ADDRESS:PORT" on standard error, waiting for it as above.
  std::optional<uint16_t> wait_for_port(std::chrono::milliseconds patience = kPatience);

 private:
  struct Stream {
    int fd = -1;
    std::string text;
  };
  void spawn(const std::filesystem::path& program, const Options& options, int stdin_fd, int stdout_fd, int stderr_fd);
  void read_output();
  template <typename Predicate>
  bool wait_until(std::chrono::milliseconds patience, Predicate predicate);
  void reap();
  void wait_for_output_end();

  pid_t pid_ = -1;
  int pid_fd_ = -1;
  std::optional<ExitStatus> status_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  Stream out_, err_;
  bool output_ended_ = false;
  std::thread reader_;
  int reader_stop_ = -1;  ///< eventfd that ends the reader although a grandchild keeps a pipe open
};

}  // namespace millrace::tests
