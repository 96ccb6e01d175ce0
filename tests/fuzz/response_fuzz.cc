#include "http/response_parser.h"
#include "tests/fuzz/target.h"

/// What a server, or whatever listens in its place, sends to the client.
namespace millrace::fuzz {

namespace {

struct Answer {
  bool failed = false;
  bool done = false;
  int status = 0;
  std::string body;
};

Answer read_answer(std::string_view bytes, size_t step) {
  Answer answer;
  http::ResponseParser parser(2048);
  parser.reset(false, [&](std::string_view data) { return answer.body += data, true; });
  size_t used = 0;
  for (size_t given = 0; given < bytes.size() && !parser.done();) {
    given = std::min(bytes.size(), given + step);
    // Fed again while it takes something: one call may stop at a part's end.
    while (!parser.done() && used < given) {
      auto took = parser.feed(bytes.substr(used, given - used));
      if (!took) return answer.failed = true, answer;
      require(*took <= given - used, "no more is used than there was");
      if (*took == 0) break;
      used += *took;
    }
  }
  if (!parser.done() && !parser.end()) answer.failed = true;
  answer.done = parser.done();
  if (parser.head_done()) answer.status = parser.status();
  return answer;
}

}  // namespace

std::vector<std::string> seed_inputs() {
  return {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
          "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
          "HTTP/1.0 200 OK\r\n\r\nuntil the end"};
}

std::vector<std::string> dictionary() {
  return {"Content-Length: 18446744073709551615\r\n",
          "Transfer-Encoding: chunked\r\n",
          "\r\n\r\n",
          "HTTP/1.1 ",
          "999",
          "fffffffffffffffff",
          "0\r\n\r\n",
          "\r\n "};
}

}  // namespace millrace::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace::fuzz;
  const std::string_view bytes = text_of(data, size);
  const Answer whole = read_answer(bytes, bytes.size() + 1);
  const Answer pieces = read_answer(bytes, 1);
  if (whole.done && pieces.done && !whole.failed && !pieces.failed)
    require(whole.status == pieces.status && whole.body == pieces.body, "an answer does not depend on the cuts");
  return 0;
}
