#include "http/problem.h"

#include <array>
#include <cstdint>

#include "http/target.h"

namespace millrace::http {
namespace {

constexpr std::array kProblems = {
    ProblemKind{ErrorKind::kInvalidArgument, 400, Retry::kNo, "The request is invalid", 0},
    ProblemKind{ErrorKind::kNotFound, 404, Retry::kNo, "There is no such thing", 0},
    ProblemKind{ErrorKind::kAlreadyExists, 409, Retry::kNo, "It exists already", 0},
    ProblemKind{ErrorKind::kConflict, 409, Retry::kNo, "A condition changed meanwhile", 0},
    ProblemKind{ErrorKind::kFenced, 409, Retry::kNo, "Another owner took over", 0},
    ProblemKind{ErrorKind::kExhausted, 503, Retry::kSafe, "A limit is reached", 1},
    ProblemKind{ErrorKind::kUnavailable, 503, Retry::kSafe, "Not available now", 1},
    ProblemKind{ErrorKind::kUnknown, 503, Retry::kUnknown, "The outcome is unknown", 0},
    ProblemKind{ErrorKind::kCorruption, 500, Retry::kNo, "Stored data is damaged", 0},
    ProblemKind{ErrorKind::kIo, 503, Retry::kSafe, "The storage failed", 0},
    ProblemKind{ErrorKind::kTimeout, 504, Retry::kUnknown, "It took too long", 0},
    ProblemKind{ErrorKind::kCancelled, 503, Retry::kUnknown, "It was cancelled", 0},
    ProblemKind{ErrorKind::kUnsupported, 501, Retry::kNo, "This is not supported", 0},
    ProblemKind{ErrorKind::kInternal, 500, Retry::kUnknown, "An internal error", 0},
};

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  auto byte = static_cast<uint8_t>(c);
  if (byte >= 0x20 && byte != 0x7f) {
    out += c;
    return;
  }
  out += "\\u00";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

Response make(int status, std::string_view title, std::string_view detail, std::string_view code, Retry retry,
              std::string_view pointer, int retry_after) {
  std::string body = "{\"type\":" + json_quote("urn:millrace:problem:" + std::string(code));
  body += ",\"title\":" + json_quote(title) + ",\"status\":" + std::to_string(status);
  body += ",\"detail\":" + json_quote(detail) + ",\"code\":" + json_quote(code);
  body += ",\"retry\":" + json_quote(to_string(retry));
  if (!pointer.empty()) body += ",\"pointer\":" + json_quote(pointer);
  body += "}\n";
  Response response{status, {}, std::move(body), "application/problem+json"};
  if (retry_after > 0) response.headers.add("Retry-After", std::to_string(retry_after));
  return response;
}

}  // namespace

std::string_view to_string(Retry retry) {
  switch (retry) {
    case Retry::kSafe:
      return "safe";
    case Retry::kUnknown:
      return "unknown";
    case Retry::kNo:
      return "no";
  }
  return "unknown";
}

const ProblemKind& problem_kind(ErrorKind kind) {
  for (const ProblemKind& entry : kProblems)
    if (entry.kind == kind) return entry;
  panic("an error kind is missing from the problem table", __FILE__, __LINE__);
}

Response problem(const Error& error) {
  const ProblemKind& kind = problem_kind(error.kind);
  return make(kind.status, kind.title, error.message, error.code, kind.retry, error.pointer, kind.retry_after_seconds);
}

Response problem(int status, std::string_view code, std::string_view detail, Retry retry, std::string_view pointer) {
  int retry_after = status == 429 || status == 503 ? 1 : 0;
  return make(status, reason_of(status), detail, code, retry, pointer, retry_after);
}

std::string json_quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  while (!text.empty()) {
    size_t length = utf8_length(text);
    if (length == 0)
      out += "\xEF\xBF\xBD";
    else if (length == 1)
      append_escaped(out, text[0]);
    else
      out.append(text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
  return out;
}

}  // namespace millrace::http
