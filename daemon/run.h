#pragma once

#include "daemon/node.h"

namespace millrace::daemon {

/// The whole program: what main() is for `millraced`, and for a daemon of a test that has processors of its own.
/// Answers the exit code.
int run_daemon(int argc, char** argv, Processors processors = {});

}  // namespace millrace::daemon
