#include "http/client.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "http/client_socket.h"
#include "http/response_parser.h"

namespace millrace::http {
namespace {

constexpr size_t kReadBytes = 64 * 1024;

bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

bool has_field(const Client::Fields& fields, std::string_view name) {
  for (const auto& [field, value] : fields)
    if (iequals(field, name)) return true;
  return false;
}

}  // namespace

struct Client::Impl {
  Impl(ServerAddress address, Options client_options)
      : options(client_options), socket(std::move(address)), parser(options.max_header_bytes), buffer(kReadBytes) {}

  // One request and its answer on one connection, new or kept. `pass` gets 2xx bodies when it is given.
  Result<Response> exchange(std::string_view method, std::string_view target, const Fields& fields,
                            std::string_view body, const Sink* pass);
  Result<Response> attempt(std::string_view method, const std::string& head, std::string_view body, const Sink* pass);
  Status send_request(const std::string& head, std::string_view body);
  Status receive(std::string_view method);
  Status feed();
  bool take_body(std::string_view bytes, const Sink* pass);
  std::string head_of(std::string_view method, std::string_view target, const Fields& fields, size_t body_size) const;
  tl::unexpected<Error> lost(std::string_view method, std::string_view why) const;
  tl::unexpected<Error> timed_out(std::string_view method) const;

  const Options options;
  ClientSocket socket;
  ResponseParser parser;
  std::vector<char> buffer;
  std::string unparsed;
  Response response;
  bool too_large = false;
  bool sent_all = false;
  size_t sent = 0;
};

std::string Client::Impl::head_of(std::string_view method, std::string_view target, const Fields& fields,
                                  size_t body_size) const {
  std::string head;
  head.reserve(256);
  head.append(method).append(" ").append(target).append(" HTTP/1.1\r\n");
  if (!has_field(fields, "Host")) append_header(head, "Host", socket.address().host_field);
  if (body_size > 0 || method == "POST" || method == "PUT" || method == "PATCH")
    append_header(head, "Content-Length", std::to_string(body_size));
  if (body_size > 0 && !has_field(fields, "Content-Type")) append_header(head, "Content-Type", "application/json");
  for (const auto& [name, value] : fields) append_header(head, name, value);
  return head.append("\r\n");
}

tl::unexpected<Error> Client::Impl::lost(std::string_view method, std::string_view why) const {
  if (socket.interrupted()) return fail(ErrorKind::kCancelled, "INTERRUPTED", "the call was interrupted");
  bool harmless = sent == 0 || is_safe(method);
  return fail(harmless ? ErrorKind::kUnavailable : ErrorKind::kUnknown, "CONNECTION_LOST",
              fmt::format("lost the connection to {}: {}{}", socket.address().url, why,
                          harmless ? "" : "; the request may have been carried out"));
}

tl::unexpected<Error> Client::Impl::timed_out(std::string_view method) const {
  bool harmless = sent == 0 || is_safe(method);
  return fail(harmless ? ErrorKind::kTimeout : ErrorKind::kUnknown, "TIMED_OUT",
              fmt::format("{} was silent for {} ms{}", socket.address().url, options.idle_timeout.count(),
                          harmless ? "" : "; the request may have been carried out"));
}

// Sends all of it, unless the server answers before: then it does not want the rest.
Status Client::Impl::send_request(const std::string& head, std::string_view body) {
  size_t total = head.size() + body.size();
  while (sent < total) {
    std::string_view head_left = std::string_view(head).substr(std::min(sent, head.size()));
    ssize_t put = socket.write(head_left, body.substr(sent > head.size() ? sent - head.size() : 0));
    if (put < 0) return {};  // An answer may have come before the connection broke: let reading tell.
    sent += static_cast<size_t>(put);
    if (put > 0) continue;
    switch (socket.wait(true, options.idle_timeout)) {
      case ClientSocket::Ready::kReadable:
        return {};
      case ClientSocket::Ready::kWritable:
        break;
      case ClientSocket::Ready::kTimeout:
        return timed_out("POST");
    }
  }
  sent_all = true;
  return {};
}

bool Client::Impl::take_body(std::string_view bytes, const Sink* pass) {
  if (pass != nullptr && parser.status() / 100 == 2) return (*pass)(bytes);
  if (response.body.size() + bytes.size() > options.max_body_bytes) {
    too_large = true;
    return false;
  }
  response.body.append(bytes);
  return true;
}

Status Client::Impl::feed() {
  auto used = parser.feed(unparsed);
  if (!used)
    return fail(used.error().kind, used.error().code,
                fmt::format("{}: {}", socket.address().url, used.error().message));
  unparsed.erase(0, *used);
  return {};
}

Status Client::Impl::receive(std::string_view method) {
  while (!parser.done() && !parser.stopped()) {
    ssize_t got = socket.read(buffer.data(), buffer.size());
    if (got == -2) {
      if (socket.wait(false, options.idle_timeout) == ClientSocket::Ready::kTimeout) return timed_out(method);
      continue;
    }
    if (got < 0) return lost(method, std::strerror(errno));
    if (got == 0) {
      if (!parser.started()) return lost(method, "it was closed before an answer");
      if (!parser.end()) return lost(method, "it was closed in the middle of the answer");
      return {};
    }
    unparsed.append(buffer.data(), static_cast<size_t>(got));
    MILLRACE_TRY(feed());
  }
  return {};
}

Result<Client::Response> Client::Impl::attempt(std::string_view method, const std::string& head, std::string_view body,
                                               const Sink* pass) {
  response = {};
  unparsed.clear();
  too_large = sent_all = false;
  sent = 0;
  ResponseParser::BodySink sink = [this, pass](std::string_view bytes) { return take_body(bytes, pass); };
  parser.reset(method == "HEAD", sink);
  MILLRACE_TRY(send_request(head, body));
  MILLRACE_TRY(receive(method));
  while (parser.done() && parser.status() / 100 == 1) {
    parser.reset(method == "HEAD", sink);
    if (!unparsed.empty()) MILLRACE_TRY(feed());
    MILLRACE_TRY(receive(method));
  }
  if (too_large)
    return fail(ErrorKind::kExhausted, "RESPONSE_TOO_LARGE",
                fmt::format("the answer of {} is larger than {} bytes", socket.address().url, options.max_body_bytes));
  response.status = parser.status();
  response.headers = std::move(parser.headers());
  return std::move(response);
}

Result<Client::Response> Client::Impl::exchange(std::string_view method, std::string_view target, const Fields& fields,
                                                std::string_view body, const Sink* pass) {
  if (socket.interrupted()) return fail(ErrorKind::kCancelled, "INTERRUPTED", "the call was interrupted");
  std::string head = head_of(method, target, fields, body.size());
  for (int tries = 0;; ++tries) {
    if (socket.is_open() && socket.is_stale()) socket.close();
    bool kept = socket.is_open();
    if (!kept) MILLRACE_TRY(socket.connect(options.connect_timeout));
    auto outcome = attempt(method, head, body, pass);
    bool reusable = outcome && sent_all && parser.done() && parser.keep_alive() && unparsed.empty();
    if (!reusable) socket.close();
    // The server closed the kept connection while the request was on its way.
    bool again = !outcome && outcome.error().code == "CONNECTION_LOST" && kept && !parser.started() &&
                 is_safe(method) && tries == 0;
    if (!again) return outcome;
  }
}

Result<Client> Client::create(std::string_view url, Options options) {
  auto address = ServerAddress::parse(url);
  if (!address) return tl::unexpected(std::move(address.error()));
  return Client(std::make_unique<Impl>(std::move(*address), options));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Result<Client::Response> Client::request(std::string_view method, std::string_view target, const Fields& fields,
                                         std::string_view body) {
  return impl_->exchange(method, target, fields, body, nullptr);
}

Result<Client::Response> Client::stream(std::string_view target, const Fields& fields, const Sink& sink) {
  return impl_->exchange("GET", target, fields, {}, &sink);
}

Result<Client::Response> Client::stream_lines(std::string_view target, const Fields& fields, const Sink& sink,
                                              size_t max_line) {
  std::string line;
  bool too_long = false;
  auto outcome = stream(target, fields, [&](std::string_view bytes) {
    while (!bytes.empty()) {
      size_t end = bytes.find('\n');
      line.append(bytes.substr(0, end));
      if (line.size() > max_line) {
        too_long = true;
        return false;
      }
      if (end == std::string_view::npos) return true;
      bytes.remove_prefix(end + 1);
      if (line.ends_with('\r')) line.pop_back();
      bool more = sink(line);
      line.clear();
      if (!more) return false;
    }
    return true;
  });
  if (too_long)
    return fail(ErrorKind::kExhausted, "RESPONSE_TOO_LARGE", fmt::format("a line has more than {} bytes", max_line));
  if (outcome && !line.empty()) sink(line);
  return outcome;
}

Result<Client::Response> Client::stream_events(std::string_view target, const Fields& fields,
                                               const std::function<bool(const Event&)>& sink) {
  Event event;
  std::string type;
  bool has_data = false;
  auto take_field = [&](std::string_view name, std::string_view value) {
    if (name == "event") type = value;
    if (name == "id") event.id = value;
    if (name != "data") return;
    if (has_data) event.data += '\n';
    event.data.append(value);
    has_data = true;
  };
  Fields all = fields;
  if (!has_field(all, "Accept")) all.emplace_back("Accept", "text/event-stream");
  return stream_lines(target, all, [&](std::string_view line) {
    if (!line.empty()) {
      size_t colon = std::min(line.find(':'), line.size());
      std::string_view value = line.substr(std::min(colon + 1, line.size()));
      if (value.starts_with(' ')) value.remove_prefix(1);
      if (colon > 0) take_field(line.substr(0, colon), value);
      return true;
    }
    bool more = true;
    event.event = type.empty() ? "message" : type;
    if (has_data) more = sink(event);
    event.data.clear();
    type.clear();
    has_data = false;
    return more;
  });
}

void Client::interrupt() {
  impl_->socket.interrupt();
}
void Client::close() {
  impl_->socket.close();
}
const std::string& Client::url() const {
  return impl_->socket.address().url;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kUnreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

}  // namespace millrace::http
