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
class Callbacks final : public beast::http::basic_parser<true> {
 public:
  Callbacks() {
    eager(true);
    header_limit(UINT32_MAX);  // The session measures the header before it gives it to us.
    body_limit(boost::none);
  }

  RequestHead* head = nullptr;
  std::string* body = nullptr;
  uint64_t limit = 0;

 private:
  void on_request_impl(beast::http::verb, View method, View target, int version, Code&) override {
    head->method = std_view(method);
    head->target = std_view(target);
    head->version = version;
  }
  void on_field_impl(beast::http::field, View name, View value, Code&) override {
    if (!is_header_done()) head->headers.add(std_view(name), std_view(value));
  }
  void on_header_impl(Code&) override {}
  void on_body_init_impl(boost::optional<uint64_t> const&, Code&) override {}
  size_t on_body_impl(View bytes, Code& fault) override { return take(bytes, fault); }
  void on_chunk_header_impl(uint64_t size, View, Code& fault) override {
    if (size > limit - std::min<uint64_t>(limit, body->size())) fault = beast::http::error::body_limit;
  }
  size_t on_chunk_body_impl(uint64_t, View bytes, Code& fault) override { return take(bytes, fault); }
  void on_finish_impl(Code&) override {}
  void on_response_impl(int, View, int, Code&) override {}

  size_t take(View bytes, Code& fault) {
    if (body->size() + bytes.size() > limit) {
      fault = beast::http::error::body_limit;
      return 0;
    }
    body->append(bytes.data(), bytes.size());
    return bytes.size();
  }
};

Refusal refuse(const Code& fault) {
  using beast::http::error;
  if (fault == error::body_limit)
    return {413, "BODY_TOO_LARGE", "the body is too large", Rejected::kBodyTooLarge, true};
  if (fault == error::bad_version)
    return {505, "UNSUPPORTED_HTTP_VERSION", "the request line does not end with HTTP/1.1 or HTTP/1.0",
            Rejected::kBadRequest, true};
  return {400, "MALFORMED_REQUEST", fmt::format("this is not a well-formed HTTP/1.1 request: {}", fault.message()),
          Rejected::kBadRequest, true};
}

}  // namespace

struct RequestParser::Impl {
  std::optional<Callbacks> parser;
};

RequestParser::RequestParser() : impl_(std::make_unique<Impl>()) {
  reset();
}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;

void RequestParser::reset() {
  impl_->parser.emplace();
}

std::optional<Refusal> RequestParser::parse_head(std::string_view bytes, RequestHead& head) {
  Callbacks& parser = *impl_->parser;
  parser.head = &head;
  Code fault;
  size_t used = parser.put({bytes.data(), bytes.size()}, fault);
  parser.head = nullptr;
  if (fault && !(fault == beast::http::error::need_more && parser.is_header_done())) return refuse(fault);
  if (used != bytes.size() || !parser.is_header_done())
    return Refusal{400, "MALFORMED_REQUEST", "the header ends in the middle of a field", Rejected::kBadRequest, true};
  head.keep_alive = parser.keep_alive();
  head.chunked = parser.chunked();
  if (auto length = parser.content_length()) head.content_length = *length;
  return std::nullopt;
}

std::optional<Refusal> RequestParser::parse_body(std::string_view bytes, uint64_t limit, std::string& body,
                                                 size_t& used) {
  Callbacks& parser = *impl_->parser;
  parser.body = &body;
  parser.limit = limit;
  Code fault;
  used = parser.put({bytes.data(), bytes.size()}, fault);
  parser.body = nullptr;
  if (fault && fault != beast::http::error::need_more) return refuse(fault);
  return std::nullopt;
}

bool RequestParser::done() const {
  return impl_->parser->is_done();
}

}  // namespace millrace::http
