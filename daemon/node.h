#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/heartbeat.h"
#include "base/result.h"
#include "config/config.h"

namespace millrace::worker {
class Processor;
}

namespace millrace::daemon {

/// What the workers run.
using Processors = std::vector<std::shared_ptr<const worker::Processor>>;

/// Everything the daemon is made of, wired together: the one place that knows all modules. Service starts it, stops it
/// and tells it of reloads; signals, logging and the service manager are not its business.
class Node {
 public:
  /// A fault that the node cannot go on with (an indeterminate write, say). By any thread, at most once counts; Service
  /// then stops in order and the process ends with exit_code_of(error).
  using OnFatal = std::function<void(Error)>;

  /// Opens, recovers and begins to serve; when it returns, the node is ready. Every loop registers with `health`, which
  /// outlives the node. On failure nothing is left running. The error's kind decides the exit code (exit_code.h).
  /// Runs on a thread of its own, as stop() does.
  struct Options {
    Processors processors = {};
    bool accept_loss = false;  ///< start with a damaged store as well; store::Options says with what
  };
  static Result<std::unique_ptr<Node>> start(const config::Config& config, Health& health, OnFatal on_fatal,
                                             Options options);
  /// After stop().
  virtual ~Node() = default;

  /// Stops taking requests, drains, flushes, releases the data directory. Called once. May take as long as it needs:
  /// Service ends the process when node.shutdownTimeout has passed.
  virtual void stop() = 0;

  /// The reloadable keys have these values now; the other keys are as at the start. By the main thread, not during
  /// stop().
  virtual void reload(const config::Config& config) = 0;
};

}  // namespace millrace::daemon
