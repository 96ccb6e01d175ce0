#include "http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/mutex.h"
#include "http/event_loop.h"
#include "http/listener.h"
#include "http/problem.h"
#include "http/server_context.h"
#include "http/session.h"

namespace millrace::http {
namespace {

// Connections that are told why they are refused, at one time; more are closed without a word.
constexpr int kMaxRefusedAtOnce = 64;

size_t thread_count(const Options& options) {
  if (options.io_threads > 0) return options.io_threads;
  return std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 1, 4);
}

Response refusal_of(ConnectionTable::Verdict verdict, Stats& stats, const Options& options) {
  if (verdict == ConnectionTable::Verdict::kTooManyFromAddress) {
    stats.reject(Rejected::kTooManyFromAddress);
    return problem(429, "TOO_MANY_CONNECTIONS",
                   fmt::format("there are {} connections from this address already, which is the most that "
                               "http.maxConnectionsPerAddress allows; close some, or use the Unix socket",
                               options.max_connections_per_address),
                   Retry::kSafe);
  }
  stats.reject(Rejected::kTooManyConnections);
  return problem(503, "TOO_MANY_CONNECTIONS",
                 fmt::format("there are {} connections already, which is the most that http.maxConnections allows",
                             options.max_connections),
                 Retry::kSafe);
}

/// The sessions of one loop. The loop's thread, save for the constructor.
class Worker final : public SessionOwner {
 public:
  Worker(std::shared_ptr<ServerContext> context, std::string name, std::function<void()> on_closed)
      : loop(std::make_shared<EventLoop>(std::move(name))),
        context_(std::move(context)),
        on_closed_(std::move(on_closed)) {}

  void adopt(UniqueFd fd, Peer peer, ConnectionTable::Verdict verdict) {
    auto session = std::make_shared<Session>(*this, context_, loop, fd.release(), std::move(peer));
    sessions_.insert(session);
    if (verdict == ConnectionTable::Verdict::kAdmitted)
      session->start();
    else
      session->refuse_connection(refusal_of(verdict, *context_->stats, context_->options));
  }

  /// `drained` is called once, when the last session has gone.
  void drain(std::chrono::milliseconds timeout, std::function<void()> drained) {
    drained_ = std::move(drained);
    for (const auto& session : std::vector(sessions_.begin(), sessions_.end())) session->drain();
    if (sessions_.empty()) return report_drained();
    loop->after(timeout, [this] { close_all(); });
  }

  void close_all() {
    for (const auto& session : std::vector(sessions_.begin(), sessions_.end())) session->close();
  }

  void on_session_closed(Session& session) override {
    if (session.admitted())
      context_->connections.release(session.peer().address);
    else
      context_->refusing.fetch_sub(1, std::memory_order_relaxed);
    sessions_.erase(session.shared_from_this());
    on_closed_();
    if (sessions_.empty()) report_drained();
  }

  const std::shared_ptr<EventLoop> loop;

 private:
  void report_drained() {
    if (auto fn = std::exchange(drained_, nullptr)) fn();
  }

  const std::shared_ptr<ServerContext> context_;
  const std::function<void()> on_closed_;
  std::unordered_set<std::shared_ptr<Session>> sessions_;
  std::function<void()> drained_;
};

}  // namespace

struct Server::Impl {
  Impl(std::shared_ptr<ServerContext> server_context, Health& server_health, std::vector<Listening> listeners);

  void on_accept(UniqueFd fd, Peer peer);
  void on_connection_closed();
  void stop(std::chrono::milliseconds drain, std::function<void()> drained);
  void report_worker_drained();
  void wait_until_drained();

  const std::shared_ptr<ServerContext> context;
  Health& health;
  std::vector<std::string> urls;
  uint16_t port = 0;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::shared_ptr<Acceptor>> acceptors;
  size_t next_worker = 0;  ///< the first loop's thread
  bool started = false;
  std::atomic<bool> stopping{false};
  std::atomic<size_t> undrained{0};
  std::function<void()> on_drained;
  Mutex mutex;
  CondVar changed;
  bool drained GUARDED_BY(mutex) = false;
};

Server::Impl::Impl(std::shared_ptr<ServerContext> server_context, Health& server_health,
                   std::vector<Listening> listeners)
    : context(std::move(server_context)), health(server_health) {
  for (size_t i = 0; i < thread_count(context->options); ++i)
    workers.push_back(std::make_unique<Worker>(context, fmt::format("io-{}", i), [this] { on_connection_closed(); }));
  for (Listening& listening : listeners) {
    urls.push_back(listening.url);
    if (port == 0) port = listening.port;
    acceptors.push_back(
        std::make_shared<Acceptor>(workers[0]->loop, std::move(listening), context->stats,
                                   [this](UniqueFd fd, Peer peer) { on_accept(std::move(fd), std::move(peer)); }));
  }
}

void Server::Impl::on_accept(UniqueFd fd, Peer peer) {
  auto verdict = context->connections.admit(peer.address);
  if (verdict != ConnectionTable::Verdict::kAdmitted &&
      context->refusing.fetch_add(1, std::memory_order_relaxed) >= kMaxRefusedAtOnce) {
    context->refusing.fetch_sub(1, std::memory_order_relaxed);
    context->stats->reject(verdict == ConnectionTable::Verdict::kTooMany ? Rejected::kTooManyConnections
                                                                         : Rejected::kTooManyFromAddress);
    return;
  }
  Worker& worker = *workers[next_worker++ % workers.size()];
  // Shared only because a std::function must be copyable.
  auto shared_fd = std::make_shared<UniqueFd>(std::move(fd));
  worker.loop->run_or_post(
      [&worker, shared_fd, peer = std::move(peer), verdict] { worker.adopt(std::move(*shared_fd), peer, verdict); });
}

void Server::Impl::on_connection_closed() {
  if (context->stats->paused_listeners.load(std::memory_order_relaxed) == 0) return;
  workers[0]->loop->run_or_post([this] {
    for (const auto& acceptor : acceptors)
      if (acceptor->paused()) acceptor->resume();
  });
}

void Server::Impl::stop(std::chrono::milliseconds drain, std::function<void()> drained_fn) {
  if (stopping.exchange(true)) return;
  on_drained = std::move(drained_fn);
  undrained = workers.size();
  if (!started) {
    for (const auto& acceptor : acceptors) acceptor->close();
    for (size_t i = 0; i < workers.size(); ++i) report_worker_drained();
    return;
  }
  // From the accepting loop, so that each worker first gets what was accepted before.
  workers[0]->loop->post([this, drain] {
    for (const auto& acceptor : acceptors) acceptor->close();
    context->draining.store(true, std::memory_order_relaxed);
    for (const auto& worker : workers)
      worker->loop->post([this, &worker, drain] { worker->drain(drain, [this] { report_worker_drained(); }); });
  });
}

void Server::Impl::report_worker_drained() {
  if (undrained.fetch_sub(1) > 1) return;
  if (on_drained) on_drained();
  MutexLock lock(mutex);
  drained = true;
  changed.notify_all();
}

void Server::Impl::wait_until_drained() {
  MutexLock lock(mutex);
  while (!drained) changed.wait(mutex);
}

Result<std::unique_ptr<Server>> Server::listen(Options options, std::shared_ptr<const Router> router, Health& health) {
  auto listeners = open_listeners(options);
  if (!listeners) return tl::unexpected(std::move(listeners.error()));
  std::vector<std::string> hosts;
  for (const Listening& listening : *listeners)
    if (!listening.host.empty()) hosts.push_back(listening.host);
  AccessPolicy policy(options, hosts);
  auto context = std::make_shared<ServerContext>(std::move(options), std::move(router), std::move(policy));
  return std::unique_ptr<Server>(new Server(std::make_unique<Impl>(std::move(context), health, std::move(*listeners))));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  if (!impl_->stopping) impl_->stop(std::chrono::milliseconds(0), nullptr);
  for (const auto& worker : impl_->workers)
    if (impl_->started) worker->loop->post([&worker] { worker->close_all(); });
  impl_->wait_until_drained();
  for (const auto& worker : impl_->workers) worker->loop->join();
}

void Server::start() {
  MILLRACE_ASSERT(!impl_->started && !impl_->stopping, "a server is started twice or after its stop");
  impl_->started = true;
  for (const auto& worker : impl_->workers) worker->loop->start(impl_->health);
  impl_->workers[0]->loop->post([impl = impl_.get()] {
    for (const auto& acceptor : impl->acceptors) acceptor->start();
  });
}

void Server::stop(std::chrono::milliseconds drain, std::function<void()> drained) {
  impl_->stop(drain, std::move(drained));
}

void Server::stop_and_wait(std::chrono::milliseconds drain) {
  impl_->stop(drain, nullptr);
  impl_->wait_until_drained();
}

const std::vector<std::string>& Server::urls() const {
  return impl_->urls;
}
uint16_t Server::port() const {
  return impl_->port;
}
const Stats& Server::stats() const {
  return *impl_->context->stats;
}
const Options& Server::options() const {
  return impl_->context->options;
}

}  // namespace millrace::http
