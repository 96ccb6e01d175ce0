#pragma once

#include <cstdint>

namespace millrace::daemon {

/// Raises the limit of open files to what the system allows this process, and answers with it. Sockets and the
/// database's files draw on it; the shell's usual 1024 is too little for either.
uint64_t raise_open_file_limit();

/// File descriptors that are not connections: database files, listeners, the process's own. A reserve, not a bound.
inline constexpr uint64_t kOpenFilesBesidesConnections = 512;

}  // namespace millrace::daemon
