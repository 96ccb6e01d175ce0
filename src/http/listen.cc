#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "http/listener.h"
#include "http/request_checks.h"

// How sockets are bound; listener.cc is what happens on them.
namespace millrace::http {
namespace {

constexpr mode_t kSocketMode = 0660;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

std::optional<Address> parse_address(const std::string& host, uint16_t port) {
  Address address;
  auto* four = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (host.starts_with('[')) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    address.size = sizeof *six;
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six->sin6_addr) != 1) return std::nullopt;
    return address;
  }
  four->sin_family = AF_INET;
  four->sin_port = htons(port);
  address.size = sizeof *four;
  if (::inet_pton(AF_INET, host.c_str(), &four->sin_addr) != 1) return std::nullopt;
  return address;
}

tl::unexpected<Error> cannot_listen(const std::string& where, int error) {
  if (error == EADDRINUSE)
    return fail(ErrorKind::kUnavailable, "ADDRESS_IN_USE",
                fmt::format("cannot listen on {}: another process does already; stop it or choose another address in "
                            "http.listen",
                            where));
  std::string_view hint = error == EACCES ? "; ports below 1024 need a privilege" : "";
  return fail(ErrorKind::kUnavailable, "ADDRESS_UNUSABLE",
              fmt::format("cannot listen on {}: {}{}; see http.listen", where, std::strerror(error), hint));
}

uint16_t bound_port(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
}

Result<Listening> listen_tcp(const std::string& host, uint16_t port, int backlog) {
  std::string where = fmt::format("{}:{}", host, port);
  auto address = parse_address(host, port);
  if (!address)
    return fail(ErrorKind::kInvalidArgument, "INVALID_LISTEN_ADDRESS",
                fmt::format("cannot listen on '{}': give an IP address with a port, such as 127.0.0.1:8480", where));
  UniqueFd fd(::socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return cannot_listen(where, errno);
  int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->storage.ss_family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address->storage), address->size) != 0 ||
      ::listen(fd.get(), backlog) != 0)
    return cannot_listen(where, errno);
  uint16_t actual = bound_port(fd.get());
  return Listening{std::move(fd), fmt::format("http://{}:{}", host, actual), host, actual, {}};
}

// "localhost" is both loopback addresses, on one port; a machine without IPv6 has only the first.
Status listen_localhost(uint16_t port, int backlog, std::vector<Listening>& all) {
  auto four = listen_tcp("127.0.0.1", port, backlog);
  if (!four) return tl::unexpected(std::move(four.error()));
  auto six = listen_tcp("[::1]", four->port, backlog);
  bool no_ipv6 = !six && six.error().code == "ADDRESS_UNUSABLE";
  if (!six && !no_ipv6) return tl::unexpected(std::move(six.error()));
  all.push_back(std::move(*four));
  if (six) all.push_back(std::move(*six));
  return {};
}

Status listen_address(const std::string& text, const Options& options, std::vector<Listening>& all) {
  auto host = parse_host(text);
  if (!host || !host->port)
    return fail(ErrorKind::kInvalidArgument, "INVALID_LISTEN_ADDRESS",
                fmt::format("cannot listen on '{}': give an IP address with a port, such as 127.0.0.1:8480", text));
  if (!is_loopback_host(host->host) && !options.authenticated)
    return fail(ErrorKind::kInvalidArgument, "UNAUTHENTICATED_LISTENER",
                fmt::format("will not listen on '{}': without authentication anybody who reaches that address could "
                            "read and write everything; listen on a loopback address, such as 127.0.0.1:{}",
                            text, *host->port));
  if (host->host == "localhost") return listen_localhost(*host->port, options.listen_backlog, all);
  auto listening = listen_tcp(host->host, *host->port, options.listen_backlog);
  if (!listening) return tl::unexpected(std::move(listening.error()));
  all.push_back(std::move(*listening));
  return {};
}

tl::unexpected<Error> socket_unusable(const std::filesystem::path& path, std::string_view why) {
  return fail(ErrorKind::kUnavailable, "SOCKET_UNUSABLE",
              fmt::format("cannot listen on the socket {}: {}; see http.unixSocket", path.string(), why));
}

// A socket file outlives a process that was killed. It may go when nobody listens behind it.
Status clear_stale_socket(const std::filesystem::path& path, const sockaddr_un& address) {
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) return {};
  if (!S_ISSOCK(file.st_mode)) return socket_unusable(path, "there is a file of another kind");
  UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return socket_unusable(path, std::strerror(errno));
  int outcome = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  // EAGAIN: somebody listens and has a full queue.
  if (outcome == 0 || errno == EAGAIN)
    return fail(ErrorKind::kUnavailable, "SOCKET_IN_USE",
                fmt::format("cannot listen on the socket {}: another process does already; stop it or choose another "
                            "path in http.unixSocket",
                            path.string()));
  if (errno != ECONNREFUSED) return socket_unusable(path, std::strerror(errno));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return socket_unusable(path, std::strerror(errno));
  return {};
}

Result<Listening> listen_unix(const std::filesystem::path& path, int backlog) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.size() >= sizeof address.sun_path)
    return socket_unusable(path, fmt::format("its path has {} bytes, and sockets take at most {}", text.size(),
                                             sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, text.data(), text.size());
  MILLRACE_TRY(clear_stale_socket(path, address));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return socket_unusable(path, std::strerror(errno));
  // The mode of the descriptor becomes that of the file, less the umask: at no moment is it wider than wanted.
  if (::fchmod(fd.get(), kSocketMode) != 0 ||
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), kSocketMode) != 0 || ::listen(fd.get(), backlog) != 0)
    return socket_unusable(path, std::strerror(errno));
  return Listening{std::move(fd), "unix:" + text, "", 0, path};
}

}  // namespace

int UniqueFd::release() {
  return std::exchange(fd_, -1);
}

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<std::vector<Listening>> open_listeners(const Options& options) {
  std::vector<Listening> all;
  for (const std::string& text : options.listen) MILLRACE_TRY(listen_address(text, options, all));
  if (!options.unix_socket.empty()) {
    auto listening = listen_unix(options.unix_socket, options.listen_backlog);
    if (!listening) return tl::unexpected(std::move(listening.error()));
    all.push_back(std::move(*listening));
  }
  if (all.empty())
    return fail(ErrorKind::kInvalidArgument, "INVALID_LISTEN_ADDRESS",
                "there is nothing to listen on: http.listen is empty and http.unixSocket is off");
  return all;
}

void remove_socket_file(const Listening& listening) {
  struct stat file {};
  if (listening.path.empty() || ::lstat(listening.path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return;
  // Another process may have taken the path over: then somebody answers, even though we no longer do.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, listening.path.c_str(), listening.path.native().size());
  UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return;
  if (::connect(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 && errno == ECONNREFUSED)
    ::unlink(listening.path.c_str());
}

}  // namespace millrace::http
