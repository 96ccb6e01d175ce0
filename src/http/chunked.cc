#include "http/chunked.h"

#include <algorithm>

namespace millrace::http {
namespace {

// 2^60 is more than any limit on a body.
constexpr int kMaxDigits = 15;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_text(char c) {
  return (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || c == '\t';
}

}  // namespace

const char* ChunkedDecoder::count_overhead() {
  return ++overhead_ > kMaxOverhead ? "chunk extensions or trailer fields are too long" : nullptr;
}

const char* ChunkedDecoder::take_size(char c) {
  if (int digit = hex_value(c); digit >= 0) {
    if (++digits_ > kMaxDigits) return "a chunk size is too large";
    left_ = left_ * 16 + static_cast<uint64_t>(digit);
    state_ = State::kSize;
    return nullptr;
  }
  if (state_ == State::kFirstDigit) return "a chunk size is not hexadecimal";
  if (c == '\r') {
    state_ = State::kSizeLf;
    return nullptr;
  }
  if (c != ';' && c != ' ' && c != '\t') return "a chunk size is not hexadecimal";
  state_ = State::kExtension;
  return count_overhead();
}

const char* ChunkedDecoder::take(char c) {
  auto expect = [&](char wanted, State next) {
    state_ = next;
    return c == wanted ? nullptr : "a line of the chunked coding does not end with CRLF";
  };
  switch (state_) {
    case State::kFirstDigit:
    case State::kSize:
      return take_size(c);
    case State::kExtension:
      if (c == '\r')
        state_ = State::kSizeLf;
      else if (!is_text(c))
        return "a chunk extension has a control character";
      return count_overhead();
    case State::kSizeLf:
      return expect('\n', left_ > 0 ? State::kData : State::kTrailer);
    case State::kDataCr:
      return expect('\r', State::kDataLf);
    case State::kDataLf:
      digits_ = 0;
      return expect('\n', State::kFirstDigit);
    case State::kTrailer:
      state_ = c == '\r' ? State::kEndLf : State::kTrailerLine;
      if (c != '\r' && !is_text(c)) return "a trailer field has a control character";
      return count_overhead();
    case State::kTrailerLine:
      if (c == '\r')
        state_ = State::kTrailerLf;
      else if (!is_text(c))
        return "a trailer field has a control character";
      return count_overhead();
    case State::kTrailerLf:
      return expect('\n', State::kTrailer);
    case State::kEndLf:
      return expect('\n', State::kDone);
    case State::kData:
    case State::kDone:
      break;
  }
  return "unreachable";
}

ChunkedDecoder::Step ChunkedDecoder::step(std::string_view bytes) {
  Step out;
  while (out.used < bytes.size() && !done()) {
    if (state_ == State::kData) {
      out.data = bytes.substr(out.used, std::min<uint64_t>(left_, bytes.size() - out.used));
      out.used += out.data.size();
      left_ -= out.data.size();
      if (left_ == 0) state_ = State::kDataCr;
      return out;
    }
    out.fault = take(bytes[out.used]);
    if (out.fault != nullptr) return out;
    ++out.used;
  }
  return out;
}

}  // namespace millrace::http
