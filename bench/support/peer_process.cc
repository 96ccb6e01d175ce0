#include "bench/support/peer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

extern char** environ;

namespace millrace::bench {

Result<PeerProcess> PeerProcess::start(const std::vector<std::string>& command) {
  int to_child[2], from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0)
    return fail(ErrorKind::kIo, "PEER_START", fmt::format("pipe: {}", std::strerror(errno)));
  ::signal(SIGPIPE, SIG_IGN);  // a peer that died shows in its answer
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  int error = ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(to_child[0]);
  ::close(from_child[1]);
  if (error != 0) {
    ::close(to_child[1]);
    ::close(from_child[0]);
    return fail(ErrorKind::kIo, "PEER_START", fmt::format("cannot start '{}': {}", command[0], std::strerror(error)));
  }
  return PeerProcess(pid, ::fdopen(to_child[1], "w"), ::fdopen(from_child[0], "r"));
}

PeerProcess::PeerProcess(PeerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      to_(std::exchange(other.to_, nullptr)),
      from_(std::exchange(other.from_, nullptr)) {}

PeerProcess::~PeerProcess() {
  if (pid_ == 0) return;
  std::fclose(to_);  // end of input is what ends the peer
  std::fclose(from_);
  ::waitpid(pid_, nullptr, 0);
}

Result<std::string> PeerProcess::ask(const std::string& line) {
  char* answer = nullptr;
  size_t capacity = 0;
  ssize_t length = -1;
  if (std::fputs((line + "\n").c_str(), to_) >= 0 && std::fflush(to_) == 0)
    length = ::getline(&answer, &capacity, from_);
  std::string text = length > 0 ? std::string(answer, static_cast<size_t>(length)) : std::string();
  std::free(answer);
  if (length <= 0)
    return fail(ErrorKind::kIo, "PEER_DIED", fmt::format("the peer ended instead of answering '{}'", line));
  if (text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace millrace::bench
