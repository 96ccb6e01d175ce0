#include "http/body_reader.h"
#include "http/params.h"
#include "http/request_checks.h"
#include "http/target.h"
#include "tests/fuzz/target.h"

/// One request as it comes off a socket: the checks of the raw header, the parser, the checks of what it read, the
/// body.
namespace millrace::fuzz {

namespace {

constexpr uint64_t kBodyLimit = 1024;

struct Body {
  bool refused = false;
  bool done = false;
  std::string bytes;
  size_t used = 0;
};

/// The body read in pieces of `step` bytes.
Body read_body(const http::RequestHead& head, std::string_view bytes, size_t step) {
  Body body;
  http::BodyReader reader;
  reader.begin(head);
  std::string_view buffered;
  size_t given = 0;
  while (!reader.done() && body.used + buffered.size() < bytes.size()) {
    given = std::min(bytes.size(), body.used + buffered.size() + step);
    buffered = bytes.substr(body.used, given - body.used);
    size_t used = 0;
    if (reader.feed(buffered, kBodyLimit, body.bytes, used)) {
      body.refused = true;
      return body;
    }
    require(used <= buffered.size(), "no more is used than there was");
    require(body.bytes.size() <= kBodyLimit, "the body keeps to its limit");
    body.used += used;
    buffered.remove_prefix(used);
  }
  body.done = reader.done();
  return body;
}

}  // namespace

std::vector<std::string> seed_inputs() {
  return {"GET /v1/topics/a%20b?limit=10&after=x HTTP/1.1\r\nHost: localhost:8080\r\n\r\n",
          "POST /v1/topics/t/records HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nExpect: "
          "100-continue\r\n\r\nhelloGET",
          "POST /x HTTP/1.1\r\nHost: [::1]:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n4;a=b\r\nWiki\r\n0005\r\npedia\r\n0\r\n"
          "Trailer: x\r\n\r\nGET /",
          "GET http://localhost:8080/v1/node HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:8080\r\n\r\n",
          "DELETE /v1/topics/t HTTP/1.0\r\nConnection: keep-alive\r\nHost: millrace.lan\r\n\r\n"};
}

std::vector<std::string> dictionary() {
  return {"Content-Length: 1\r\n",
          "Transfer-Encoding: chunked\r\n",
          "Transfer-Encoding: gzip, chunked\r\n",
          "Transfer-Encoding : chunked\r\n",
          "Host: a\r\n",
          "\r\n ",
          "\n\n",
          "\r\n\r\n",
          "ffffffffffffffff\r\n",
          "0\r\n\r\n",
          "+5",
          "0x5",
          "%00",
          "%ff",
          "..",
          "HTTP/1.1",
          "HTTP/2.0",
          "Expect: 200-ok\r\n",
          "\v",
          "Origin: null\r\n"};
}

}  // namespace millrace::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  using namespace millrace::http;
  const std::string_view bytes = fuzz::text_of(data, size);
  (void)percent_decode(bytes);
  (void)percent_decode(bytes, true);
  (void)split_verb(bytes);
  if (const auto host = parse_host(bytes)) fuzz::require(!host->host.empty(), "a host has a name");
  (void)Param::duration("d", "").check(bytes);
  (void)Param::size("s", "").check(bytes);

  const size_t end = find_header_end(bytes, 0);
  if (end == std::string_view::npos) return 0;
  fuzz::require(end <= size, "the header ends where there are bytes");
  const Options options;
  const std::string_view head_bytes = bytes.substr(0, end);
  if (check_head_bytes(head_bytes, options)) return 0;
  RequestHead head;
  if (parse_head(head_bytes, head)) return 0;
  if (check_framing(head)) return 0;
  fuzz::require(!(head.chunked && head.content_length), "a body has one framing");
  const size_t hosts = head.headers.count("Host");
  fuzz::require(hosts == 1 || (hosts == 0 && head.version == 10), "one Host, or none on HTTP/1.0");
  for (size_t i = 0; i < head.headers.size(); ++i)
    fuzz::require(head.headers.value(i).find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos,
                  "no line end in a field");
  if (take_absolute_form(head)) return 0;
  static const AccessPolicy policy(options, {"127.0.0.1"});
  (void)policy.check(head.headers, false);
  if (!head.has_body()) return 0;
  const std::string_view rest = bytes.substr(end);
  const fuzz::Body whole = fuzz::read_body(head, rest, rest.size());
  for (size_t step : {1, 3, 7}) {
    const fuzz::Body pieces = fuzz::read_body(head, rest, step);
    fuzz::require(pieces.refused == whole.refused && pieces.done == whole.done,
                  "the verdict does not depend on the cuts");
    if (whole.done)
      fuzz::require(pieces.bytes == whole.bytes && pieces.used == whole.used, "nor do the body and its end");
  }
  return 0;
}
