#include "config/http_config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include "config/section_builder.h"
#include "config/section_tables.h"

namespace millrace::config {
namespace {

using namespace std::chrono_literals;

bool is_host_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
}

bool is_host(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    in6_addr binary{};
    return ::inet_pton(AF_INET6, std::string(text.substr(1, text.size() - 2)).c_str(), &binary) == 1;
  }
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), is_host_character);
}

/// A host name or address, with a port or without.
bool is_host_with_port(std::string_view text) {
  size_t colon = text.ends_with(']') ? std::string_view::npos : text.rfind(':');
  if (colon == std::string_view::npos) return is_host(text);
  return parse_port(text.substr(colon + 1)).value_or(0) != 0 && is_host(text.substr(0, colon));
}

Parsed<std::string> parse_host(std::string_view text) {
  if (!is_host_with_port(text))
    return Wrong(show(text) + " is no host name or address, such as millrace.lan or millrace.lan:8080");
  return std::string(text);
}

Parsed<std::string> parse_origin(std::string_view text) {
  std::string_view host = text;
  for (std::string_view scheme : {"https://", "http://"})
    if (host.starts_with(scheme)) host.remove_prefix(scheme.size());
  if (host.size() == text.size() || !is_host_with_port(host))
    return Wrong(show(text) + " is no origin, such as https://console.example or http://localhost:3000");
  return std::string(text);
}

const std::string& as_is(const std::string& text) {
  return text;
}

}  // namespace

Section http_section() {
  using C = HttpConfig;
  constexpr uint64_t kKB = 1ull << 10, kMB = 1ull << 20, kGB = 1ull << 30;
  constexpr size_t kListItems = 64;  // Each is compared with every request.
  SectionBuilder<C> s("http", &Config::http, "The HTTP API: where it listens and what it puts up with.");
  s.list("listen", "list of endpoints", &C::listen, 16, parse_endpoint, format_endpoint,
         "Addresses with port to listen on. Only loopback addresses are allowed, for there is no authentication yet. "
         "Port 0 lets the "
         "system choose one, which the log names.")
      .empty_stands_for("no TCP listener");
  s.path("unixSocket", &C::unix_socket,
         "Path of the Unix socket to listen on; none for no such listener. At most 107 bytes.")
      .empty_stands_for("millrace.sock in the data directory");
  s.integer("ioThreads", &C::io_threads, 1, 64, "Threads that serve the sockets.");
  s.integer("maxConnections", &C::max_connections, 1, 1'000'000,
            "Open connections, at most; further ones are closed at once.");
  s.integer("maxConnectionsPerAddress", &C::max_connections_per_address, 1, 1'000'000,
            "Open connections from one address, at most. All clients on this machine that do not use the Unix socket "
            "share one.");
  s.size("maxHeaderSize", &C::max_header_bytes, 1 * kKB, 1 * kMB, "Largest header of a request.");
  s.size("maxBodySize", &C::max_body_bytes, 1 * kKB, 512 * kMB, "Largest body of a request.");
  s.size("maxBodyMemory", &C::max_body_memory_bytes, 1 * kMB, 64 * kGB,
         "Memory of all request bodies together; a request that would pass it is answered 503.");
  s.duration("requestTimeout", &C::request_timeout, 100ms, 10min,
             "A request must have arrived whole this long after its first byte.");
  s.duration("idleTimeout", &C::idle_timeout, 100ms, 1h, "A connection without a request is closed after this time.");
  s.duration("writeTimeout", &C::write_timeout, 100ms, 10min,
             "A client that takes no byte of its answer for this long is cut off.");
  s.duration("drainTimeout", &C::drain_timeout, 0s, 5min,
             "How long a stop lets requests under way finish before it closes their connections.");
  s.list("allowedHosts", "list of hosts", &C::allowed_hosts, kListItems, parse_host, as_is,
         "Names, with a port or without, that a request's Host may carry besides localhost and the addresses listened "
         "on. It "
         "stops web pages that "
         "rebind their name to this machine.")
      .empty_stands_for("no further names");
  s.list("allowedOrigins", "list of origins", &C::allowed_origins, kListItems, parse_origin, as_is,
         "Origins of web pages that may call the API from a browser.")
      .empty_stands_for("no web page may");
  return std::move(s).build();
}

}  // namespace millrace::config
