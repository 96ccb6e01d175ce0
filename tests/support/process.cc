#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ostream>
#include <system_error>

// glibc 2.36 forgot to say that these are C.
extern "C" {
#include <sys/pidfd.h>
}

extern char** environ;

namespace millrace::tests {
namespace {

int checked(int result, const std::string& what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

/// "NAME=value" of the test's own environment with the changes applied.
std::vector<std::string> environment_with(const std::map<std::string, std::optional<std::string>>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) result.push_back(std::move(text));
  }
  for (const auto& [name, value] : changes)
    if (value) result.push_back(name + "=" + *value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// A file without a name that holds `text`, for standard input: a pipe would have to be fed.
int file_with(const std::string& text) {
  int fd = checked(::memfd_create("stdin", MFD_CLOEXEC), "memfd_create");
  size_t written = 0;
  while (written < text.size())
    written += static_cast<size_t>(
        checked(static_cast<int>(::write(fd, text.data() + written, text.size() - written)), "write"));
  checked(static_cast<int>(::lseek(fd, 0, SEEK_SET)), "lseek");
  return fd;
}

/// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(const char* program, char** argv, char** envp, const char* directory,
                         const std::map<int, uint64_t>& limits, pid_t parent, const std::array<int, 3>& standard,
                         int error_fd) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // The test died in between.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  bool good = true;
  for (int fd = 0; fd < 3; ++fd) good = good && ::dup2(standard[static_cast<size_t>(fd)], fd) == fd;
  for (const auto& [resource, value] : limits) {
    rlimit limit{value, value};
    good = good && ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0;
  }
  if (*directory != '\0') good = good && ::chdir(directory) == 0;
  if (good) ::execve(program, argv, envp);
  int error = errno;
  [[maybe_unused]] ssize_t told = ::write(error_fd, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

std::string to_string(const ExitStatus& status) {
  if (status.code) return "exit code " + std::to_string(*status.code);
  return "signal " + std::to_string(*status.signal) + " (" + ::strsignal(*status.signal) + ")";
}

void PrintTo(const ExitStatus& status, std::ostream* out) {
  *out << to_string(status);
}

Process::Process(const std::filesystem::path& program, Options options) {
  std::array<int, 2> out{}, err{};
  checked(::pipe2(out.data(), O_CLOEXEC), "pipe2");
  checked(::pipe2(err.data(), O_CLOEXEC), "pipe2");
  int in = file_with(options.input);
  out_.fd = out[0];
  err_.fd = err[0];
  reader_stop_ = checked(::eventfd(0, EFD_CLOEXEC), "eventfd");
  try {
    spawn(program, options, in, out[1], err[1]);
  } catch (...) {
    for (int fd : {in, out[0], out[1], err[0], err[1], reader_stop_}) ::close(fd);
    throw;
  }
  for (int fd : {in, out[1], err[1]}) ::close(fd);
  reader_ = std::thread([this] { read_output(); });
}

void Process::spawn(const std::filesystem::path& program, const Options& options, int stdin_fd, int stdout_fd,
                    int stderr_fd) {
  std::vector<std::string> arguments = {program.string()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = environment_with(options.environment);
  std::vector<char*> argv = pointers_to(arguments), envp = pointers_to(environment);
  // Closed by a successful exec; otherwise it carries errno.
  std::array<int, 2> failure{};
  checked(::pipe2(failure.data(), O_CLOEXEC), "pipe2");
  pid_t parent = ::getpid();
  pid_ = checked(::fork(), "fork");
  if (pid_ == 0)
    become(program.c_str(), argv.data(), envp.data(), options.working_directory.c_str(), options.limits, parent,
           {stdin_fd, stdout_fd, stderr_fd}, failure[1]);
  ::setpgid(pid_, pid_);  // Both sides do it, so that the group exists whichever runs first.
  ::close(failure[1]);
  int error = 0;
  bool failed = ::read(failure[0], &error, sizeof error) == sizeof error;
  ::close(failure[0]);
  if (failed) {
    ::waitpid(pid_, nullptr, 0);
    throw std::system_error(error, std::generic_category(), "cannot run " + program.string());
  }
  pid_fd_ = checked(::pidfd_open(pid_, 0), "pidfd_open");
}

Process::~Process() {
  if (!status_) kill();
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(reader_stop_, &one, sizeof one);
  reader_.join();
  for (int fd : {pid_fd_, out_.fd, err_.fd, reader_stop_}) ::close(fd);
}

void Process::read_output() {
  std::array<pollfd, 3> fds = {{{out_.fd, POLLIN, 0}, {err_.fd, POLLIN, 0}, {reader_stop_, POLLIN, 0}}};
  std::array<char, 65536> buffer;
  auto take = [&](pollfd& from, Stream& stream) {
    if (from.fd < 0 || from.revents == 0) return;
    ssize_t got = ::read(from.fd, buffer.data(), buffer.size());
    if (got <= 0) {
      from.fd = -1;  // poll ignores it from now on
      return;
    }
    std::lock_guard lock(mutex_);
    stream.text.append(buffer.data(), static_cast<size_t>(got));
    // Cut rarely: erasing the front moves everything.
    if (stream.text.size() > 2 * kKeptOutput) stream.text.erase(0, stream.text.size() - kKeptOutput);
    arrived_.notify_all();
  };
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    take(fds[0], out_);
    take(fds[1], err_);
    if (fds[2].revents != 0 && fds[0].revents == 0 && fds[1].revents == 0) break;
  }
  std::lock_guard lock(mutex_);
  output_ended_ = true;
  arrived_.notify_all();
}

bool Process::send(int signal) {
  return !status_ && ::pidfd_send_signal(pid_fd_, signal, nullptr, 0) == 0;
}

/// The process has ended or is about to. Its group goes with it: as long as it is not waited for, nobody else can have
/// its id.
void Process::reap() {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  ::kill(-pid_, SIGKILL);
  int status = 0;
  pid_t got = 0;
  while ((got = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  checked(got, "waitpid");
  status_ = WIFEXITED(status) ? exited(WEXITSTATUS(status)) : killed_by(WTERMSIG(status));
}

std::optional<ExitStatus> Process::wait(std::chrono::milliseconds patience) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (!status_) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd end{pid_fd_, POLLIN, 0};
    int ready = ::poll(&end, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready > 0) reap();
    if (ready == 0) return std::nullopt;
  }
  wait_for_output_end();
  return status_;
}

/// What is in the pipes arrives at once; only a process that left the group could keep them open.
void Process::wait_for_output_end() {
  wait_until(std::chrono::seconds(5), [this] { return output_ended_; });
}

ExitStatus Process::kill() {
  if (!status_) {
    ::kill(-pid_, SIGKILL);
    reap();
  }
  wait_for_output_end();
  return *status_;
}

ExitStatus Process::stop(std::chrono::milliseconds patience) {
  send(SIGTERM);
  if (auto status = wait(patience)) return *status;
  return kill();
}

bool Process::running() {
  if (status_) return false;
  pollfd end{pid_fd_, POLLIN, 0};
  return ::poll(&end, 1, 0) == 0;
}

std::string Process::out() const {
  std::lock_guard lock(mutex_);
  return out_.text;
}

std::string Process::err() const {
  std::lock_guard lock(mutex_);
  return err_.text;
}

/// Until the predicate holds (true), or the output has ended or the patience run out (false, unless it holds then).
template <typename Predicate>
bool Process::wait_until(std::chrono::milliseconds patience, Predicate predicate) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(mutex_);
  while (!predicate()) {
    if (output_ended_ || arrived_.wait_until(lock, deadline) == std::cv_status::timeout) return predicate();
  }
  return true;
}

bool Process::wait_for_err(const std::string& text, size_t from, std::chrono::milliseconds patience) {
  return wait_until(patience,
                    [&] { return from <= err_.text.size() && err_.text.find(text, from) != std::string::npos; });
}

std::optional<uint16_t> Process::wait_for_port(std::chrono::milliseconds patience) {
  std::optional<uint16_t> port;
  wait_until(patience, [&] {
    // Only whole lines: the port may still be on its way.
    std::string_view text(err_.text.data(), err_.text.rfind('\n') + 1);
    constexpr std::string_view kMark = "listening on ";
    for (size_t at = text.find(kMark); at != std::string_view::npos && !port; at = text.find(kMark, at + 1)) {
      std::string_view address = text.substr(at + kMark.size());
      address = address.substr(0, address.find_first_of(" \t\n\",;"));
      size_t colon = address.rfind(':');
      uint16_t number = 0;
      if (colon == std::string_view::npos) continue;  // a Unix socket
      const char* end = address.data() + address.size();
      auto [stop, error] = std::from_chars(address.data() + colon + 1, end, number);
      if (error == std::errc{} && (stop == end || *stop == '/')) port = number;
    }
    return port.has_value();
  });
  return port;
}

}  // namespace millrace::tests
