#pragma once

#include <string>

namespace millrace {

/// Names the calling thread as `ps -L` and the thread table of ARCHITECTURE.md show it (at most 15 characters).
void name_this_thread(const std::string& name);

}  // namespace millrace
