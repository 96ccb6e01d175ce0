#include "daemon/exit_code.h"

namespace millrace::daemon {

ExitCode exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kIo:
    case ErrorKind::kCorruption:
    case ErrorKind::kUnknown:
      return kExitIo;
    case ErrorKind::kAlreadyExists:
    case ErrorKind::kUnavailable:
    case ErrorKind::kExhausted:
    case ErrorKind::kTimeout:
      return kExitTemporary;
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kNotFound:
    case ErrorKind::kUnsupported:
      return kExitConfig;
    case ErrorKind::kConflict:
    case ErrorKind::kFenced:
    case ErrorKind::kCancelled:
    case ErrorKind::kInternal:
      return kExitInternal;
  }
  return kExitInternal;
}

}  // namespace millrace::daemon
