#include "base/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace millrace {

void fill_standard_files() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. The wrong way round, so that using it fails.
    (void)!::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace millrace
