#include "daemon/limits.h"

#include <sys/resource.h>

#include <algorithm>

namespace millrace::daemon {

uint64_t raise_open_file_limit() {
  // Above this nothing of ours gains, and "unlimited" is no number to plan with.
  constexpr rlim_t kEnough = 524'288;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace millrace::daemon
