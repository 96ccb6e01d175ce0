#include "tests/cli/run_cli.h"

#include <sys/mman.h>
#include <unistd.h>

#include "cli/run.h"

namespace millrace::cli::tests {
namespace {

/// A file in memory.
class Scratch {
 public:
  explicit Scratch(const std::string& content) : fd_(::memfd_create("cli-test", MFD_CLOEXEC)) {
    size_t put = 0;
    while (put < content.size()) put += static_cast<size_t>(::write(fd_, content.data() + put, content.size() - put));
    ::lseek(fd_, 0, SEEK_SET);
  }
  ~Scratch() { ::close(fd_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  int fd() const { return fd_; }
  std::string content() const {
    std::string all;
    char bytes[4096];
    ::lseek(fd_, 0, SEEK_SET);
    for (ssize_t got; (got = ::read(fd_, bytes, sizeof bytes)) > 0;) all.append(bytes, static_cast<size_t>(got));
    return all;
  }

 private:
  int fd_;
};

void hurry(RetryPolicy& retry) {
  retry.first_pause = retry.longest_pause = retry.longest_wish = std::chrono::milliseconds(1);
}

}  // namespace

Ran run_cli(const std::string& server, std::vector<std::string> arguments, const std::string& input) {
  std::vector<const char*> argv = {"millrace", "--server", server.c_str()};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  auto line = parse_command_line(static_cast<int>(argv.size()), argv.data());
  if (!line) return {line.error(), "", ""};
  if (auto* produce = std::get_if<ProduceCommand>(&line->command)) hurry(produce->retry);
  if (auto* consume = std::get_if<ConsumeCommand>(&line->command)) hurry(consume->retry);
  Scratch in(input), out(""), err("");
  Interrupts interrupts;
  Console console(in.fd(), out.fd(), err.fd());
  int exit = run(*line, console, interrupts);
  return {exit, out.content(), err.content()};
}

}  // namespace millrace::cli::tests
