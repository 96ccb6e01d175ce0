#include "http/body_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace::http {
namespace {

Refusal too_large(uint64_t limit) {
  return {413, "BODY_TOO_LARGE", fmt::format("the body has more than {} bytes, which is the most that is taken", limit),
          Rejected::kBodyTooLarge, true};
}

}  // namespace

void BodyReader::begin(const RequestHead& head) {
  chunked_ = head.chunked;
  left_ = head.content_length.value_or(0);
  decoder_ = {};
}

std::optional<Refusal> BodyReader::feed(std::string_view bytes, uint64_t limit, std::string& body, size_t& used) {
  if (chunked_) return feed_chunked(bytes, limit, body, used);
  used = std::min<uint64_t>(left_, bytes.size());
  if (body.size() + left_ > limit) return too_large(limit);
  body.append(bytes.substr(0, used));
  left_ -= used;
  return std::nullopt;
}

std::optional<Refusal> BodyReader::feed_chunked(std::string_view bytes, uint64_t limit, std::string& body,
                                                size_t& used) {
  used = 0;
  while (used < bytes.size() && !decoder_.done()) {
    auto step = decoder_.step(bytes.substr(used));
    if (step.fault != nullptr) return Refusal{400, "MALFORMED_REQUEST", step.fault, Rejected::kBadRequest, true};
    used += step.used;
    body.append(step.data);
    if (body.size() + decoder_.chunk_left() > limit) return too_large(limit);
  }
  return std::nullopt;
}

}  // namespace millrace::http
