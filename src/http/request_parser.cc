#include "http/request_parser.h"

#include <fmt/format.h>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace millrace::http {
namespace {

namespace beast = boost::beast;
using Code = boost::system::error_code;
using View = beast::string_view;

std::string_view std_view(View view) {
  return {view.data(), view.size()};
}

// Beast's callbacks, taken down without its containers: its fields allocate once each.
class HeadParser final : public beast::http::basic_parser<true> {
 public:
  explicit HeadParser(RequestHead& head) : head_(head) {
    header_limit(UINT32_MAX);  // The session measures the header before it gives it to us.
    body_limit(boost::none);
  }

 private:
  void on_request_impl(beast::http::verb, View method, View target, int version, Code&) override {
    head_.method = std_view(method);
    head_.target = std_view(target);
    head_.version = version;
  }
  void on_field_impl(beast::http::field, View name, View value, Code&) override {
    head_.headers.add(std_view(name), std_view(value));
  }
  void on_header_impl(Code&) override {}
  void on_response_impl(int, View, int, Code&) override {}
  // Not reached: the parser sees no body.
  void on_body_init_impl(boost::optional<uint64_t> const&, Code&) override {}
  size_t on_body_impl(View bytes, Code&) override { return bytes.size(); }
  void on_chunk_header_impl(uint64_t, View, Code&) override {}
  size_t on_chunk_body_impl(uint64_t, View bytes, Code&) override { return bytes.size(); }
  void on_finish_impl(Code&) override {}

  RequestHead& head_;
};

Refusal refuse(const Code& fault) {
  if (fault == beast::http::error::bad_version)
    return {505, "UNSUPPORTED_HTTP_VERSION", "the request line does not end with HTTP/1.1 or HTTP/1.0",
            Rejected::kBadRequest, true};
  return {400, "MALFORMED_REQUEST", fmt::format("this is not a well-formed HTTP/1.1 request: {}", fault.message()),
          Rejected::kBadRequest, true};
}

}  // namespace

std::optional<Refusal> parse_head(std::string_view bytes, RequestHead& head) {
  HeadParser parser(head);
  Code fault;
  size_t used = parser.put({bytes.data(), bytes.size()}, fault);
  if (fault) return refuse(fault);
  if (used != bytes.size() || !parser.is_header_done())
    return Refusal{400, "MALFORMED_REQUEST", "the header ends in the middle of a field", Rejected::kBadRequest, true};
  head.keep_alive = parser.keep_alive();
  head.chunked = parser.chunked();
  if (auto length = parser.content_length()) head.content_length = *length;
  return std::nullopt;
}

}  // namespace millrace::http
