#include "http/response_head.h"

#include <charconv>

namespace millrace::http {
namespace {

void append_number(std::string& out, size_t number) {
  char text[24];
  auto [end, fault] = std::to_chars(text, text + sizeof text, number);
  out.append(text, end);
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (char c : value) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  out.append("\r\n");
}

}  // namespace

bool has_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

std::string format_head(const Response& response, const ResponseContext& context) {
  std::string out;
  out.reserve(384);
  out.append(context.version >= 11 ? "HTTP/1.1 " : "HTTP/1.0 ");
  append_number(out, static_cast<size_t>(response.status));
  out.append(" ").append(reason_of(response.status)).append("\r\nDate: ").append(context.date).append("\r\n");
  if (has_body(response.status)) {
    if (!response.content_type.empty()) append_field(out, "Content-Type", response.content_type);
    if (!context.streaming) {
      out.append("Content-Length: ");
      append_number(out, response.body.size());
      out.append("\r\n");
    } else if (context.version >= 11) {
      out.append("Transfer-Encoding: chunked\r\n");
    }
  }
  if (!context.keep_alive)
    out.append("Connection: close\r\n");
  else if (context.version < 11)
    out.append("Connection: keep-alive\r\n");
  if (!context.request_id.empty()) append_field(out, "X-Request-Id", context.request_id);
  for (size_t i = 0; i < response.headers.size(); ++i)
    append_field(out, response.headers.name(i), response.headers.value(i));
  // Nothing here is for a cache or for a browser's guess at its type, unless the handler says so.
  if (!response.headers.find("Cache-Control")) out.append("Cache-Control: no-store\r\n");
  out.append("X-Content-Type-Options: nosniff\r\n");
  if (!context.cors_origin.empty()) {
    append_field(out, "Access-Control-Allow-Origin", context.cors_origin);
    out.append("Vary: Origin\r\n");
  }
  out.append("\r\n");
  return out;
}

}  // namespace millrace::http
