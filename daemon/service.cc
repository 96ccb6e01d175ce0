#include "daemon/service.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <thread>

#include "base/thread.h"
#include "daemon/command_line.h"
#include "daemon/limits.h"
#include "daemon/logging.h"

namespace millrace::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

std::string_view name_of(int signal) {
  return signal == SIGTERM ? "SIGTERM" : signal == SIGINT ? "SIGINT" : "SIGHUP";
}

void warn_of_few_files(uint64_t limit, uint32_t max_connections) {
  if (limit < max_connections + kOpenFilesBesidesConnections)
    spdlog::warn(
        "only {} files may be open, too few for http.maxConnections ({}) and the database; raise the limit "
        "(LimitNOFILE=, "
        "ulimit -n) to {}",
        limit, max_connections, max_connections + kOpenFilesBesidesConnections);
}

}  // namespace

Service::Service(config::Loaded loaded, config::Sources sources, StartNode start_node)
    : running_(std::move(loaded)),
      sources_(std::move(sources)),
      start_node_(std::move(start_node)),
      watchdog_(health_, running_.config.node.loop_stuck_after, [this] { manager_.watchdog(); }) {}

int Service::run() {
  const config::NodeConfig& node = running_.config.node;
  spdlog::info("{} starts as '{}', process {}, data in {}, configuration from {}", version_text(), node.name,
               ::getpid(), node.data_directory.string(), sources_.file ? sources_.file->string() : "defaults");
  warn_of_few_files(raise_open_file_limit(), running_.config.http.max_connections);
  if (!start()) return exit_code_;
  take_fatal();
  if (!stopping_) serve();
  stop();
  return exit_code_;
}

bool Service::start() {
  manager_.status("starting");
  int64_t began = clock_.steady_ns();
  Result<std::unique_ptr<Node>> started = nullptr;
  run_beside("start", [&] {
    started = start_node_(running_.config, health_, [this](Error error) { on_fatal(std::move(error)); });
  });
  if (!started) {
    spdlog::critical("cannot start: {}", to_string(started.error()));
    manager_.status("cannot start: " + to_string(started.error()));
    exit_code_ = exit_code_of(started.error());
    return false;
  }
  node_ = std::move(*started);
  spdlog::info("started in {} ms", (clock_.steady_ns() - began) / 1'000'000);
  return true;
}

void Service::serve() {
  manager_.ready("ready");
  spdlog::info("ready");
  if (reload_wanted_) reload();
  const milliseconds interval =
      Watchdog::interval(running_.config.node.loop_stuck_after, ServiceManager::watchdog_period());
  int64_t next_look = clock_.steady_ns();
  while (!stopping_) {
    if (clock_.steady_ns() >= next_look) {
      look_after_loops();
      next_look = clock_.steady_ns() + nanoseconds(interval).count();
    }
    // Rounded up, so that the wait does not end just before the look is due.
    auto wait = nanoseconds(next_look - clock_.steady_ns()) + nanoseconds(999'999);
    Events::Event event = events_.wait(std::chrono::duration_cast<milliseconds>(wait));
    if (event.kind == Events::Event::Kind::kSignal) on_signal(event.signal);
    take_fatal();
  }
}

void Service::stop() {
  manager_.stopping();
  int64_t began = clock_.steady_ns();
  run_beside("stop", [&] {
    node_->stop();
    node_.reset();
  });
  take_fatal();
  spdlog::info("stopped in {} ms", (clock_.steady_ns() - began) / 1'000'000);
}

void Service::run_beside(const char* name, const std::function<void()>& work) {
  std::atomic<bool> done{false};
  std::exception_ptr thrown;
  std::thread thread([&] {
    name_this_thread(name);
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    done.store(true, std::memory_order_release);
    events_.wake();
  });
  while (!done.load(std::memory_order_acquire)) {
    auto left = time_left();
    if (left && left->count() == 0) give_up();
    Events::Event event = events_.wait(left);
    if (event.kind != Events::Event::Kind::kSignal) continue;
    // Until there is something to reload; during a stop nothing comes of it.
    if (event.signal == SIGHUP)
      reload_wanted_ = true;
    else
      on_stop_signal(event.signal);
  }
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

void Service::on_signal(int signal) {
  if (signal == SIGHUP)
    reload();
  else
    on_stop_signal(signal);
}

void Service::on_stop_signal(int signal) {
  if (stopping_) {
    spdlog::warn("second {}: ending at once", name_of(signal));
    die_by(signal);
  }
  spdlog::info("{}: stopping in order, within {} ms", name_of(signal), running_.config.node.shutdown_timeout.count());
  begin_to_stop();
}

void Service::begin_to_stop() {
  stopping_ = true;
  stop_deadline_ns_ = clock_.steady_ns() + nanoseconds(running_.config.node.shutdown_timeout).count();
}

std::optional<milliseconds> Service::time_left() const {
  if (!stopping_) return std::nullopt;
  auto left = nanoseconds(std::max<int64_t>(stop_deadline_ns_ - clock_.steady_ns(), 0));
  return std::chrono::ceil<milliseconds>(left);
}

void Service::give_up() {
  std::string unanswered;
  for (const Health::LoopState& loop : health_.check())
    if (loop.unanswered_ns > 0) unanswered += " " + loop.name;
  spdlog::critical("not stopped within node.shutdownTimeout ({} ms); ending at once. Loops without an answer:{}",
                   running_.config.node.shutdown_timeout.count(), unanswered.empty() ? " none" : unanswered);
  ::_exit(kExitInternal);
}

void Service::reload() {
  manager_.reloading();
  auto fresh = config::load(sources_);
  if (!fresh) {
    for (const config::Fault& fault : fresh.error()) spdlog::error("reload: {}", to_string(fault));
    spdlog::error("reload: the configuration has {} faults; nothing was changed", fresh.error().size());
    return manager_.ready("ready; the last reload was refused");
  }
  config::ReloadPlan plan = config::plan_reload(running_, *fresh);
  running_ = std::move(plan.result);
  if (!plan.applied.empty()) {
    set_log_level(running_.config.node.log_level);
    node_->reload(running_.config);
  }
  for (const auto& change : plan.applied)
    spdlog::info("reload: {} is now '{}' (was '{}')", change.key, change.to, change.from);
  for (const auto& change : plan.needs_restart)
    spdlog::warn("reload: {} stays '{}'; '{}' needs a restart", change.key, change.from, change.to);
  spdlog::info("reload: applied {}, to be applied by a restart {}", plan.applied.size(), plan.needs_restart.size());
  manager_.ready("ready");
}

void Service::look_after_loops() {
  bool was_stuck = !watchdog_.stuck().empty();
  bool fed = watchdog_.look();
  if (!fed) manager_.status("stuck: " + watchdog_.stuck());
  if (fed && was_stuck) manager_.status("ready");
}

void Service::on_fatal(Error error) {
  {
    MutexLock lock(fatal_mutex_);
    if (!fatal_) fatal_ = std::move(error);
  }
  events_.wake();
}

void Service::take_fatal() {
  MutexLock lock(fatal_mutex_);
  if (!fatal_ || exit_code_ != kExitOk) return;
  spdlog::critical("cannot go on: {}", to_string(*fatal_));
  exit_code_ = exit_code_of(*fatal_);
  if (!stopping_) begin_to_stop();
}

}  // namespace millrace::daemon
