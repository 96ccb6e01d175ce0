#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace millrace {

/// What class of thing went wrong. It decides the HTTP status, the exit code and whether a retry is safe;
/// the stable `code` beside it names the exact cause.
enum class ErrorKind {
  kInvalidArgument,  ///< the caller's input is wrong; the same call will fail again
  kNotFound,
  kAlreadyExists,
  kConflict,        ///< a condition changed meanwhile; read again and decide anew
  kFenced,          ///< the caller's lease epoch is stale; it must stop
  kExhausted,       ///< a bound is reached (queue, memory, quota); retry later
  kUnavailable,     ///< not now (starting, stopping, disk nearly full); nothing was done
  kUnknown,         ///< indeterminate: the effect may or may not be durable
  kCorruption,      ///< stored bytes are not what was written
  kIo,              ///< the operating system refused; nothing was acknowledged
  kTimeout,
  kCancelled,
  kUnsupported,
  kInternal,
};

std::string_view to_string(ErrorKind kind);

/// An error that a person can act on: the message names the thing and the value.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  /// Stable, UPPER_SNAKE_CASE, documented in docs/http.md. Always a string literal.
  std::string_view code = "INTERNAL";
  std::string message;
  /// JSON pointer to the bad field of a request, where there is one.
  std::string pointer = {};
};

/// "CODE: message", for logs and exceptions.
std::string to_string(const Error& error);

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string_view code, std::string message, std::string pointer = {}) {
  return tl::unexpected<Error>(Error{kind, code, std::move(message), std::move(pointer)});
}

/// A broken invariant of our own: prints the place and aborts. For what input can cause, use Error.
[[noreturn]] void panic(std::string_view message, const char* file, int line);

}  // namespace millrace

/// Checked in every build type: an invariant worth writing down is worth checking.
#define MILLRACE_ASSERT(condition, message) \
  do {                                      \
    if (!(condition)) [[unlikely]]          \
      ::millrace::panic(message, __FILE__, __LINE__); \
  } while (false)

/// Returns the error of a Result expression to the caller.
#define MILLRACE_TRY(expression)                                              \
  do {                                                                        \
    if (auto millrace_status = (expression); !millrace_status) [[unlikely]]   \
      return ::tl::unexpected<::millrace::Error>(std::move(millrace_status.error())); \
  } while (false)
