#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace millrace {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return "invalid argument";
    case ErrorKind::kNotFound: return "not found";
    case ErrorKind::kAlreadyExists: return "already exists";
    case ErrorKind::kConflict: return "conflict";
    case ErrorKind::kFenced: return "fenced";
    case ErrorKind::kExhausted: return "exhausted";
    case ErrorKind::kUnavailable: return "unavailable";
    case ErrorKind::kUnknown: return "unknown";
    case ErrorKind::kCorruption: return "corruption";
    case ErrorKind::kIo: return "I/O error";
    case ErrorKind::kTimeout: return "timeout";
    case ErrorKind::kCancelled: return "cancelled";
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kInternal: return "internal error";
  }
  return "internal error";
}

std::string to_string(const Error& error) { return std::string(error.code) + ": " + error.message; }

void panic(std::string_view message, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: invariant broken: %.*s\n", file, line, static_cast<int>(message.size()), message.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace millrace
