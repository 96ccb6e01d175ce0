#include "http/response_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>

#include "http/chunked.h"

namespace millrace::http {
namespace {

namespace beast = boost::beast;
using Code = boost::system::error_code;
using View = beast::string_view;

class HeadParser final : public beast::http::basic_parser<false> {
 public:
  HeadParser(size_t max_header_bytes, bool no_body) {
    header_limit(static_cast<uint32_t>(max_header_bytes));
    body_limit(boost::none);  // The sink counts.
    skip(no_body);
  }

  int status = 0;
  Headers headers;

 private:
  void on_request_impl(beast::http::verb, View, View, int, Code&) override {}
  void on_response_impl(int code, View, int, Code&) override { status = code; }
  void on_field_impl(beast::http::field, View name, View value, Code&) override {
    headers.add({name.data(), name.size()}, {value.data(), value.size()});
  }
  void on_header_impl(Code&) override {}
  // Not reached: the parser sees no body.
  void on_body_init_impl(boost::optional<uint64_t> const&, Code&) override {}
  size_t on_body_impl(View bytes, Code&) override { return bytes.size(); }
  void on_chunk_header_impl(uint64_t, View, Code&) override {}
  size_t on_chunk_body_impl(uint64_t, View bytes, Code&) override { return bytes.size(); }
  void on_finish_impl(Code&) override {}
};

tl::unexpected<Error> bad_response(std::string_view why) {
  return fail(ErrorKind::kInternal, "BAD_RESPONSE", fmt::format("the answer is not well-formed HTTP: {}", why));
}

}  // namespace

struct ResponseParser::Impl {
  const size_t max_header_bytes;
  std::optional<HeadParser> head;
  BodySink sink;
  bool started = false;
  bool done = false;
  bool stopped = false;
  bool until_close = false;
  uint64_t left = 0;
  ChunkedDecoder chunks;

  Result<size_t> feed_head(std::string_view bytes);
  void pass(std::string_view data) {
    if (!data.empty() && !sink(data)) stopped = true;
  }
};

ResponseParser::ResponseParser(size_t max_header_bytes)
    : impl_(std::make_unique<Impl>(Impl{max_header_bytes, {}, {}, false, false, false, false, 0, {}})) {}
ResponseParser::~ResponseParser() = default;

void ResponseParser::reset(bool no_body, BodySink sink) {
  impl_->head.emplace(impl_->max_header_bytes, no_body);
  impl_->sink = std::move(sink);
  impl_->started = impl_->done = impl_->stopped = impl_->until_close = false;
  impl_->left = 0;
  impl_->chunks = {};
}

Result<size_t> ResponseParser::Impl::feed_head(std::string_view bytes) {
  Code fault;
  size_t used = head->put({bytes.data(), bytes.size()}, fault);
  if (fault && fault != beast::http::error::need_more) return bad_response(fault.message());
  if (!head->is_header_done()) return used;
  until_close = head->need_eof();
  left = head->content_length().value_or(0);
  done = head->is_done();  // no body
  return used;
}

Result<size_t> ResponseParser::feed(std::string_view bytes) {
  Impl& self = *impl_;
  size_t used = 0;
  self.started = self.started || !bytes.empty();
  while (used < bytes.size() && !self.done && !self.stopped) {
    std::string_view rest = bytes.substr(used);
    if (!self.head->is_header_done()) {
      auto taken = self.feed_head(rest);
      if (!taken) return taken;
      used += *taken;
      if (*taken == 0) break;
    } else if (self.head->chunked()) {
      auto step = self.chunks.step(rest);
      if (step.fault != nullptr) return bad_response(step.fault);
      used += step.used;
      self.pass(step.data);
      self.done = self.chunks.done();
    } else {
      size_t piece = self.until_close ? rest.size() : std::min<uint64_t>(self.left, rest.size());
      used += piece;
      self.left -= self.until_close ? 0 : piece;
      self.pass(rest.substr(0, piece));
      self.done = !self.until_close && self.left == 0;
    }
  }
  return used;
}

Status ResponseParser::end() {
  if (!head_done() || !impl_->until_close)
    return fail(ErrorKind::kInternal, "BAD_RESPONSE", "the connection ended in the middle of the answer");
  impl_->done = true;
  return {};
}

bool ResponseParser::started() const {
  return impl_->started;
}
bool ResponseParser::head_done() const {
  return impl_->head->is_header_done();
}
bool ResponseParser::done() const {
  return impl_->done;
}
bool ResponseParser::stopped() const {
  return impl_->stopped;
}
bool ResponseParser::keep_alive() const {
  return head_done() && impl_->head->keep_alive();
}
int ResponseParser::status() const {
  return impl_->head->status;
}
Headers& ResponseParser::headers() {
  return impl_->head->headers;
}

}  // namespace millrace::http
