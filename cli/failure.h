#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/result.h"
#include "http/client.h"

namespace millrace::cli {

/// What the process ends with. Documented in docs/cli.md: scripts decide by it.
enum ExitCode : int {
  kExitOk = 0,
  kExitRefused = 1,       ///< the server said no
  kExitUsage = 2,         ///< the command line or the input is wrong; nothing of it was sent
  kExitUnreachable = 3,   ///< no server, or no Millrace node; nothing was changed
  kExitUnknown = 4,       ///< the change may or may not have been made
  kExitLocalIo = 5,       ///< standard input or output failed
  kExitInternal = 70,     ///< a fault of our own
  kExitInterrupted = 130  ///< SIGINT or SIGTERM
};

/// Why a command ends without success: what the person reads and what the script sees. `text` is what follows
/// "millrace: " on standard error; empty when there is nothing to say (an interrupt, a closed pipe).
struct Failure {
  ExitCode exit = kExitInternal;
  std::string text;
  std::string pointer = {};  ///< of the refused field, when the server named one
};

template <typename T>
using Outcome = tl::expected<T, Failure>;
using Done = Outcome<void>;

inline tl::unexpected<Failure> fails(ExitCode exit, std::string text = {}) {
  return tl::unexpected<Failure>(Failure{exit, std::move(text), {}});
}

/// The problem a server answered with (RFC 9457). Fields that are missing are empty; a body that is no problem
/// becomes its detail, shortened.
struct Problem {
  int status = 0;
  std::string code;
  std::string detail;
  std::string retry;  ///< "safe", "unknown", "no"
  std::string pointer;

  static Problem of(const http::Client::Response& response);
  /// True when the same request, with the same idempotency key where it changes something, may succeed later.
  bool retriable() const { return retry == "safe" || retry == "unknown"; }
};

/// "DETAIL (CODE, at POINTER)"; kExitUnknown for an unknown outcome of a request that changes something.
Failure failure_of(const Problem& problem, bool changes);
/// The same for what went wrong on the way. `server` is the address as given.
Failure failure_of(const Error& error, std::string_view server, bool changes);

}  // namespace millrace::cli

/// Returns the failure of an Outcome expression to the caller.
#define MILLRACE_CLI_TRY(expression)                                                     \
  do {                                                                                   \
    if (auto cli_outcome = (expression); !cli_outcome) [[unlikely]]                      \
      return ::tl::unexpected<::millrace::cli::Failure>(std::move(cli_outcome.error())); \
  } while (false)
