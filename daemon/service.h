#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/heartbeat.h"
#include "base/mutex.h"
#include "config/load.h"
#include "daemon/events.h"
#include "daemon/exit_code.h"
#include "daemon/node.h"
#include "daemon/service_manager.h"
#include "daemon/watchdog.h"

namespace millrace::daemon {

/// The life of the process between a valid configuration and its exit code:
///
///     start the node -> READY -> signals, reloads, watchdog -> STOPPING -> stop the node in order
///
/// The main thread stays in this class and listens to signals all the time: starting and stopping run on a thread
/// beside it. The first SIGTERM or SIGINT stops in order (after the start, when it comes during it), a second one ends
/// the process at once, and so does node.shutdownTimeout. Made and run once, by the main thread.
class Service {
 public:
  using StartNode = std::function<Result<std::unique_ptr<Node>>(const config::Config&, Health&, Node::OnFatal)>;

  /// `sources` are where `loaded` came from; a reload reads them again. Tests start another node.
  Service(config::Loaded loaded, config::Sources sources, StartNode start_node);

  /// Returns the process's exit code; or does not return, as said above.
  int run();

 private:
  bool start();
  void serve();
  void stop();

  /// Runs `work` on a thread named `name` and handles signals until it is done. An exception of `work` is thrown here.
  void run_beside(const char* name, const std::function<void()>& work);
  void on_signal(int signal);
  void on_stop_signal(int signal);
  void reload();
  void look_after_loops();
  void begin_to_stop();
  [[noreturn]] void give_up();
  std::optional<std::chrono::milliseconds> time_left() const;
  void take_fatal();
  void on_fatal(Error error) EXCLUDES(fatal_mutex_);

  const Clock& clock_ = SystemClock::instance();
  config::Loaded running_;
  const config::Sources sources_;
  const StartNode start_node_;
  Events events_;
  ServiceManager manager_;
  Health health_{clock_};
  Watchdog watchdog_;
  std::unique_ptr<Node> node_;
  ExitCode exit_code_ = kExitOk;
  bool reload_wanted_ = false;  ///< SIGHUP came during the start
  bool stopping_ = false;
  int64_t stop_deadline_ns_ = 0;  ///< on clock_, while stopping_

  Mutex fatal_mutex_;
  std::optional<Error> fatal_ GUARDED_BY(fatal_mutex_);
};

}  // namespace millrace::daemon
