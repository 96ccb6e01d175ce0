#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/options.h"
#include "http/refusal.h"
#include "http/request_parser.h"

/// What the parser lets pass and a careful server must not: everything by which two parties could disagree on where
/// a request ends (RFC 9112 sections 3.2, 5, 6 and 11.2), and by which a web page could reach a local server.
/// Pure functions of bytes, so that they can be fuzzed.
namespace millrace::http {

/// Where the header ends (one past CRLFCRLF), or npos. `from` is where an earlier, shorter look may be resumed.
size_t find_header_end(std::string_view bytes, size_t from);

/// On the raw header, before the parser, which unfolds lines and hides what it saw: folded lines, too many fields,
/// control characters, a too long target.
std::optional<Refusal> check_head_bytes(std::string_view head, const Options& options);

/// On the parsed header: Transfer-Encoding other than exactly "chunked" on HTTP/1.1, Content-Length other than one
/// plain number, both, not exactly one Host, Expect other than 100-continue.
std::optional<Refusal> check_framing(const RequestHead& head);

/// Takes "http://authority" off an absolute-form target and makes it the Host, as RFC 9112 section 3.2.2 asks.
std::optional<Refusal> take_absolute_form(RequestHead& head);

struct HostAndPort {
  std::string host;  ///< lower case; brackets kept on an IPv6 address
  std::optional<uint16_t> port;
};
std::optional<HostAndPort> parse_host(std::string_view text);

/// Who may ask: the defence against DNS rebinding (Host) and cross-site requests (Origin). A Host may name any port,
/// since a forwarded port changes it and no attack hangs on it. Built once, then only read.
class AccessPolicy {
 public:
  /// `listened` are the addresses that listeners are bound to; they are allowed as hosts.
  AccessPolicy(const Options& options, const std::vector<std::string>& listened);

  /// `any_host` on a Unix socket, where there is no name to rebind.
  std::optional<Refusal> check(const Headers& headers, bool any_host) const;
  /// A configured origin, for which answers carry CORS headers.
  bool is_foreign_but_allowed(std::string_view origin) const;

 private:
  bool host_allowed(const HostAndPort& host) const;

  std::vector<HostAndPort> hosts_;
  std::vector<std::string> origins_;
};

bool is_loopback_host(std::string_view host);

}  // namespace millrace::http
