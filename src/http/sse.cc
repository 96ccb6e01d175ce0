#include "http/sse.h"

#include <fmt/format.h>

namespace millrace::http {
namespace {

constexpr std::string_view kLineEnds = "\r\n";

// A field's value must stay on its line.
void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (char c : value) out += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
  out += '\n';
}

void append_data(std::string& out, std::string_view data) {
  for (;;) {
    size_t end = data.find_first_of(kLineEnds);
    out.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) return;
    data.remove_prefix(data.substr(end, 2) == kLineEnds ? end + 2 : end + 1);
  }
}

}  // namespace

EventStream EventStream::start(const Responder& responder, const EventOptions& options) {
  Response head{200, {}, {}, "text/event-stream"};
  head.headers.add("Cache-Control", "no-store");
  EventStream stream(responder.start_stream(std::move(head), {.max_queued_bytes = options.max_queued_bytes,
                                                              .heartbeat = options.heartbeat,
                                                              .heartbeat_bytes = ": \n\n",
                                                              .goodbye_bytes = ": server is stopping\n\n"}));
  stream.bytes_.write(fmt::format("retry: {}\n\n", options.reconnect.count()));
  return stream;
}

bool EventStream::send(std::string_view event, std::string_view id, std::string_view data) const {
  std::string out;
  out.reserve(event.size() + id.size() + data.size() + 32);
  if (!event.empty()) append_field(out, "event", event);
  if (!id.empty()) append_field(out, "id", id);
  append_data(out, data);
  out += '\n';
  return bytes_.write(out);
}

bool EventStream::comment(std::string_view text) const {
  std::string out;
  append_field(out, "", text);
  out += '\n';
  return bytes_.write(out);
}

}  // namespace millrace::http
