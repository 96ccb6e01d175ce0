#include "http/request_checks.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace millrace::http {
namespace {

Refusal bad_request(std::string_view code, std::string detail) {
  return {400, code, std::move(detail), Rejected::kBadRequest, true};
}

Refusal forbidden(std::string_view code, std::string detail, Rejected reason) {
  return {403, code, std::move(detail), reason, false};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

size_t find_header_end(std::string_view bytes, size_t from) {
  // Up to three bytes of the end may have come before.
  size_t at = bytes.find("\r\n\r\n", from < 3 ? 0 : from - 3);
  return at == std::string_view::npos ? at : at + 4;
}

std::optional<Refusal> check_head_bytes(std::string_view head, const Options& options) {
  size_t fields = 0;
  for (size_t line = 0; line < head.size();) {
    const void* found = std::memchr(head.data() + line, '\n', head.size() - line);
    size_t end = found == nullptr ? head.size() : static_cast<size_t>(static_cast<const char*>(found) - head.data());
    if (end == line || end == head.size() || head[end - 1] != '\r')
      return bad_request("MALFORMED_REQUEST", "a header line does not end with CRLF");
    if (line > 0 && (head[line] == ' ' || head[line] == '\t'))
      return bad_request("FOLDED_HEADER", "a header field is folded over several lines, which RFC 9112 forbids");
    if (line > 0 && end > line + 1) ++fields;
    line = end + 1;
  }
  if (fields > options.max_header_fields)
    return Refusal{
        431, "TOO_MANY_HEADERS",
        fmt::format("the request has {} header fields; at most {} are taken", fields, options.max_header_fields),
        Rejected::kHeaderTooLarge, true};
  if (std::memchr(head.data(), '\0', head.size()) != nullptr)
    return bad_request("MALFORMED_REQUEST", "the header contains a NUL");
  std::string_view first_line = head.substr(0, head.find('\r'));
  size_t target = first_line.find(' ');
  size_t target_end = target == std::string_view::npos ? target : first_line.find(' ', target + 1);
  if (target_end != std::string_view::npos && target_end - target - 1 > options.max_target_bytes)
    return Refusal{414, "TARGET_TOO_LONG",
                   fmt::format("the request target has {} bytes; at most {} are taken", target_end - target - 1,
                               options.max_target_bytes),
                   Rejected::kHeaderTooLarge, true};
  return std::nullopt;
}

std::optional<Refusal> check_framing(const RequestHead& head) {
  const Headers& headers = head.headers;
  size_t encodings = headers.count("Transfer-Encoding");
  size_t lengths = headers.count("Content-Length");
  if (encodings > 0 && lengths > 0)
    return bad_request("AMBIGUOUS_LENGTH", "the request has both Content-Length and Transfer-Encoding");
  if (encodings > 1 || (encodings == 1 && !iequals(*headers.find("Transfer-Encoding"), "chunked")))
    return bad_request("UNSUPPORTED_TRANSFER_ENCODING",
                       "Transfer-Encoding must be exactly 'chunked'; other codings are not supported");
  if (encodings == 1 && head.version < 11)
    return bad_request("UNSUPPORTED_TRANSFER_ENCODING", "HTTP/1.0 has no Transfer-Encoding");
  if (lengths > 1 || (lengths == 1 && !is_digits(*headers.find("Content-Length"))))
    return bad_request("AMBIGUOUS_LENGTH", "Content-Length must be one decimal number");
  size_t hosts = headers.count("Host");
  if (hosts > 1) return bad_request("BAD_HOST", "the request has several Host fields");
  if (hosts == 0 && head.version >= 11) return bad_request("BAD_HOST", "an HTTP/1.1 request needs a Host field");
  if (auto expect = headers.find("Expect"); expect && !iequals(*expect, "100-continue"))
    return Refusal{417, "EXPECTATION_FAILED", "the only expectation known is 100-continue", Rejected::kBadRequest,
                   true};
  return std::nullopt;
}

std::optional<Refusal> take_absolute_form(RequestHead& head) {
  constexpr std::string_view kScheme = "http://";
  if (head.target.size() < kScheme.size() || !iequals(head.target.substr(0, kScheme.size()), kScheme))
    return std::nullopt;
  size_t path = std::min(head.target.find_first_of("/?", kScheme.size()), head.target.size());
  std::string authority = head.target.substr(kScheme.size(), path - kScheme.size());
  if (!parse_host(authority)) return bad_request("BAD_HOST", "the authority in the request target is malformed");
  head.headers.set("Host", authority);
  head.target.erase(0, path);
  if (!head.target.starts_with('/')) head.target.insert(0, "/");
  return std::nullopt;
}

std::optional<HostAndPort> parse_host(std::string_view text) {
  HostAndPort parsed;
  size_t end = 0;
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    in6_addr binary{};
    if (::inet_pton(AF_INET6, std::string(text.substr(1, end - 1)).c_str(), &binary) != 1) return std::nullopt;
    ++end;
  } else {
    end = std::min(text.find(':'), text.size());
  }
  parsed.host = lower(text.substr(0, end));
  if (!parsed.host.starts_with('[') &&
      (parsed.host.empty() || !std::all_of(parsed.host.begin(), parsed.host.end(), is_host_character)))
    return std::nullopt;
  std::string_view rest = text.substr(end);
  if (rest.empty()) return parsed;
  rest.remove_prefix(1);
  uint16_t port = 0;
  auto [last, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (text[end] != ':' || !is_digits(rest) || fault != std::errc() || last != rest.data() + rest.size())
    return std::nullopt;
  parsed.port = port;
  return parsed;
}

bool is_loopback_host(std::string_view host) {
  if (iequals(host, "localhost")) return true;
  std::string text(host);
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  if (!text.starts_with('[') || !text.ends_with(']')) return false;
  in6_addr six{};
  return ::inet_pton(AF_INET6, text.substr(1, text.size() - 2).c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

AccessPolicy::AccessPolicy(const Options& options, const std::vector<std::string>& listened)
    : origins_(options.allowed_origins) {
  for (const auto* list : {&options.allowed_hosts, &listened})
    for (const std::string& text : *list)
      if (auto host = parse_host(text)) hosts_.push_back(std::move(*host));
}

bool AccessPolicy::host_allowed(const HostAndPort& host) const {
  if (is_loopback_host(host.host)) return true;
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const HostAndPort& allowed) {
    return allowed.host == host.host && (!allowed.port || allowed.port == host.port);
  });
}

std::optional<Refusal> AccessPolicy::check(const Headers& headers, bool any_host) const {
  auto host = headers.find("Host");
  if (host && !any_host) {
    auto parsed = parse_host(*host);
    if (!parsed) return bad_request("BAD_HOST", "the Host field is malformed");
    if (!host_allowed(*parsed))
      return forbidden(
          "HOST_NOT_ALLOWED",
          fmt::format("the host '{}' is neither a loopback name nor one of http.allowedHosts", host->substr(0, 200)),
          Rejected::kHost);
  }
  if (headers.count("Origin") == 0) return std::nullopt;
  std::string_view origin = *headers.find("Origin");
  bool same = headers.count("Origin") == 1 && host && iequals(origin, fmt::format("http://{}", *host));
  if (same || (headers.count("Origin") == 1 && is_foreign_but_allowed(origin))) return std::nullopt;
  return forbidden(
      "ORIGIN_NOT_ALLOWED",
      fmt::format("the origin '{}' is neither this server nor one of http.allowedOrigins", origin.substr(0, 200)),
      Rejected::kOrigin);
}

bool AccessPolicy::is_foreign_but_allowed(std::string_view origin) const {
  return std::any_of(origins_.begin(), origins_.end(), [&](const std::string& o) { return iequals(o, origin); });
}

}  // namespace millrace::http
