#include "bench/support/daemon.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "bench/support/report.h"
#include "http/client.h"

namespace millrace::bench {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench: {}\n", why);
  std::exit(1);
}

http::Client client_of(uint16_t port) {
  return http::Client::create(fmt::format("127.0.0.1:{}", port)).value();
}

}  // namespace

uint16_t free_port() {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* place = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, place, size) != 0 || ::getsockname(fd, place, &size) != 0) give_up("no port is free");
  ::close(fd);
  return ntohs(address.sin_port);
}

Daemon::Daemon(const std::filesystem::path& binary, std::filesystem::path data, std::vector<std::string> more)
    : data_(std::move(data)), port_(free_port()) {
  std::vector<std::string> arguments{binary.string(), "--data", data_.string(), "--set",
                                     fmt::format("http.listen=127.0.0.1:{}", port_)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string log = data_.string() + ".log";
  const double began = steady_seconds();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  while (!is_ready()) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      give_up(fmt::format("{} did not start; see {}", binary.string(), log));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ready_seconds_ = steady_seconds() - began;
}

Daemon::~Daemon() {
  if (pid_ > 0) end(SIGKILL);
}

bool Daemon::is_ready() const {
  auto answer = client_of(port_).get("/v1/node/ready");
  return answer && answer->status == 200;
}

double Daemon::rss_mb() const {
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) * 1024 / 1e6;
  give_up("the daemon is gone");
}

double Daemon::cpu_seconds() const {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid_));
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  // After the name in brackets: state is field 3, utime 14, stime 15.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void Daemon::end(int signal) {
  ::kill(pid_, signal);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
}
void Daemon::kill() {
  end(SIGKILL);
}
void Daemon::stop() {
  end(SIGTERM);
}

std::string Daemon::must(const std::string& method, const std::string& target, const std::string& body) {
  auto answer = client_of(port_).request(method, target, {}, body);
  if (!answer) give_up(to_string(answer.error()));
  if (answer->status / 100 != 2) give_up(fmt::format("{} {}: {} {}", method, target, answer->status, answer->body));
  return std::move(answer->body);
}

}  // namespace millrace::bench
