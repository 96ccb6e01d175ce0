#include "tests/cli/cutter.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <system_error>

#include "tests/support/raw_socket.h"

namespace millrace::cli::tests {
namespace {

bool fill(int fd, std::string& buffer) {
  char bytes[4096];
  ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
  if (got > 0) buffer.append(bytes, static_cast<size_t>(got));
  return got > 0;
}

// One request with its body, taken off the buffer; nothing at the end.
std::optional<std::string> take_request(int fd, std::string& buffer) {
  size_t end;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos)
    if (!fill(fd, buffer)) return std::nullopt;
  size_t field = buffer.find("Content-Length: ");
  size_t body = field < end ? std::strtoul(buffer.c_str() + field + 16, nullptr, 10) : 0;
  while (buffer.size() < end + 4 + body)
    if (!fill(fd, buffer)) return std::nullopt;
  std::string request = buffer.substr(0, end + 4 + body);
  buffer.erase(0, request.size());
  return request;
}

}  // namespace

Cutter::Cutter(uint16_t node_port, std::deque<Fault> faults) : node_port_(node_port), faults_(std::move(faults)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::system_error(errno, std::generic_category(), "listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { loop(); });
}

Cutter::~Cutter() {
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

std::string Cutter::url() const {
  return "http://127.0.0.1:" + std::to_string(port_);
}

void Cutter::loop() {
  for (;;) {
    int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    serve(client);
    ::close(client);
  }
}

void Cutter::serve(int client) {
  auto node = millrace::tests::RawSocket::tcp(node_port_);
  std::string buffer;
  while (auto request = take_request(client, buffer)) {
    Fault fault = Fault::kNone;
    if (request->starts_with("POST") && !faults_.empty()) {
      fault = faults_.front();
      faults_.pop_front();
    }
    if (fault == Fault::kBefore) return;
    // The node checks Host against where it listens.
    size_t host = request->find("Host: "), line_end = request->find("\r\n", host);
    request->replace(host, line_end - host, "Host: 127.0.0.1:" + std::to_string(node_port_));
    node.send(*request);
    auto answer = node.read_answer();
    if (!answer || fault == Fault::kAfter) return;
    std::string bytes = answer->head + "\r\n\r\n" + answer->body;
    ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
}

}  // namespace millrace::cli::tests
