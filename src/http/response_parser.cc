#include "http/response_parser.h"

#include <fmt/format.h>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>

namespace millrace::http {
namespace {

namespace beast = boost::beast;
using Code = boost::system::error_code;
using View = beast::string_view;

class Callbacks final : public beast::http::basic_parser<false> {
 public:
  Callbacks(size_t max_header_bytes, bool no_body, ResponseParser::BodySink sink) : sink_(std::move(sink)) {
    eager(true);
    header_limit(static_cast<uint32_t>(max_header_bytes));
    body_limit(boost::none);  // The sink counts.
    skip(no_body);
  }

  int status = 0;
  Headers headers;
  bool stopped = false;

 private:
  void on_request_impl(beast::http::verb, View, View, int, Code&) override {}
  void on_response_impl(int code, View, int, Code&) override { status = code; }
  void on_field_impl(beast::http::field, View name, View value, Code&) override {
    if (!is_header_done()) headers.add({name.data(), name.size()}, {value.data(), value.size()});
  }
  void on_header_impl(Code&) override {}
  void on_body_init_impl(boost::optional<uint64_t> const&, Code&) override {}
  size_t on_body_impl(View bytes, Code& fault) override { return pass(bytes, fault); }
  void on_chunk_header_impl(uint64_t, View, Code&) override {}
  size_t on_chunk_body_impl(uint64_t, View bytes, Code& fault) override { return pass(bytes, fault); }
  void on_finish_impl(Code&) override {}

  size_t pass(View bytes, Code& fault) {
    if (!bytes.empty() && !sink_({bytes.data(), bytes.size()})) {
      stopped = true;
      fault = beast::http::error::end_of_stream;
    }
    return bytes.size();
  }

  ResponseParser::BodySink sink_;
};

tl::unexpected<Error> bad_response(const Code& fault) {
  return fail(ErrorKind::kInternal, "BAD_RESPONSE",
              fmt::format("the answer is not well-formed HTTP: {}", fault.message()));
}

}  // namespace

struct ResponseParser::Impl {
  size_t max_header_bytes;
  std::optional<Callbacks> parser;
};

ResponseParser::ResponseParser(size_t max_header_bytes)
    : impl_(std::make_unique<Impl>(Impl{max_header_bytes, std::nullopt})) {}
ResponseParser::~ResponseParser() = default;

void ResponseParser::reset(bool no_body, BodySink sink) {
  impl_->parser.emplace(impl_->max_header_bytes, no_body, std::move(sink));
}

Result<size_t> ResponseParser::feed(std::string_view bytes) {
  Code fault;
  size_t used = impl_->parser->put({bytes.data(), bytes.size()}, fault);
  if (fault && fault != beast::http::error::need_more && !impl_->parser->stopped) return bad_response(fault);
  return used;
}

Status ResponseParser::end() {
  Code fault;
  if (impl_->parser->got_some()) impl_->parser->put_eof(fault);
  if (!impl_->parser->got_some() || fault)
    return fail(ErrorKind::kInternal, "BAD_RESPONSE", "the connection ended in the middle of the answer");
  return {};
}

bool ResponseParser::started() const {
  return impl_->parser->got_some();
}
bool ResponseParser::head_done() const {
  return impl_->parser->is_header_done();
}
bool ResponseParser::done() const {
  return impl_->parser->is_done();
}
bool ResponseParser::stopped() const {
  return impl_->parser->stopped;
}
bool ResponseParser::keep_alive() const {
  return impl_->parser->is_header_done() && impl_->parser->keep_alive();
}
int ResponseParser::status() const {
  return impl_->parser->status;
}
Headers& ResponseParser::headers() {
  return impl_->parser->headers;
}

}  // namespace millrace::http
