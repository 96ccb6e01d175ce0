#pragma once

#include "base/result.h"

namespace millrace::daemon {

/// What the process ends with, after sysexits.h, so that a service manager can tell what a restart would change.
/// Documented in docs/config.md; etc/millraced.service names the ones that it must not restart on.
enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 64,      ///< the command line is wrong
  kExitInternal = 70,   ///< a fault of our own, or a stop that took too long
  kExitIo = 74,         ///< the disk refused, or what is on it is damaged
  kExitTemporary = 75,  ///< in use, or nearly full: may work later
  kExitConfig = 78,     ///< the configuration is wrong, or the data is of a newer version
};

ExitCode exit_code_of(const Error& error);

}  // namespace millrace::daemon
