#include "http/event_loop.h"

#include <spdlog/spdlog.h>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <ctime>
#include <thread>

#include "base/result.h"
#include "base/thread.h"

namespace millrace::http {
namespace {

namespace asio = boost::asio;
using Context = asio::io_context;
using Code = boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<SteadyClock, asio::wait_traits<SteadyClock>, Context::executor_type>;
using StreamDescriptor = asio::posix::basic_stream_descriptor<Context::executor_type>;

thread_local const EventLoop* current_loop = nullptr;

}  // namespace

struct EventLoop::Asio {
  Context context{1};  // One thread runs it.
  asio::executor_work_guard<Context::executor_type> work{context.get_executor()};
  Timer timer{context};
  std::thread thread;
};

EventLoop::EventLoop(std::string name)
    : name_(std::move(name)), asio_(std::make_unique<Asio>()), scratch_(new char[kScratchBytes]) {}

EventLoop::~EventLoop() {
  MILLRACE_ASSERT(!asio_->thread.joinable(), "an event loop is destroyed while its thread runs");
}

void EventLoop::start(Health& health) {
  heartbeat_ = health.watch(name_, [weak = weak_from_this()] {
    if (auto loop = weak.lock()) loop->post([] {});
  });
  asio_->thread = std::thread([this] { run(); });
}

void EventLoop::run() {
  name_this_thread(name_);
  current_loop = this;
  for (;;) {
    try {
      asio_->context.run();
      break;
    } catch (const std::exception& fault) {
      spdlog::error("{}: an exception reached the event loop: {}", name_, fault.what());
    }
  }
  // Closed descriptors' last notices hold their owners, which hold this loop: let them go.
  asio_->context.restart();
  asio_->context.poll();
  timers_.clear();
  current_loop = nullptr;
}

void EventLoop::join() {
  std::vector<std::function<void()>> dropped;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(mailbox_);
  }
  asio_->context.stop();
  if (asio_->thread.joinable()) asio_->thread.join();
  heartbeat_.reset();
}

bool EventLoop::post(std::function<void()> fn) {
  {
    MutexLock lock(mutex_);
    if (closed_) return false;
    mailbox_.push_back(std::move(fn));
    if (wake_posted_) return true;
    wake_posted_ = true;
  }
  wake();
  return true;
}

void EventLoop::wake() {
  asio::post(asio_->context, [this] { drain(); });
}

void EventLoop::drain() {
  if (heartbeat_) heartbeat_->beat();
  {
    MutexLock lock(mutex_);
    running_.swap(mailbox_);
    wake_posted_ = false;
  }
  for (auto& fn : running_) {
    run_guarded(fn, name_);
    fn = nullptr;  // What it captured goes before the next one runs.
  }
  running_.clear();
}

bool EventLoop::in_thread() const {
  return current_loop == this;
}

void EventLoop::run_or_post(std::function<void()> fn) {
  if (in_thread())
    fn();
  else
    post(std::move(fn));
}

int64_t EventLoop::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch()).count();
}

TimerQueue::Id EventLoop::at(int64_t due_ns, std::function<void()> fn) {
  auto id = timers_.add(due_ns, std::move(fn));
  arm_timer();
  return id;
}

TimerQueue::Id EventLoop::after(std::chrono::milliseconds delay, std::function<void()> fn) {
  return at(now_ns() + std::chrono::nanoseconds(delay).count(), std::move(fn));
}

void EventLoop::arm_timer() {
  auto due = timers_.next_due();
  if (!due || *due >= armed_ns_) return;  // A timer that fires early finds nothing due and arms again.
  armed_ns_ = *due;
  asio_->timer.expires_at(SteadyClock::time_point(std::chrono::nanoseconds(*due)));
  asio_->timer.async_wait([this](Code fault) {
    if (!fault) run_timers();
  });
}

void EventLoop::run_timers() {
  armed_ns_ = INT64_MAX;
  int64_t now = now_ns();
  while (auto fn = timers_.take_due(now)) run_guarded(fn, name_);
  arm_timer();
}

std::string_view EventLoop::http_date() {
  int64_t second = ::time(nullptr);
  if (second != date_second_) {
    date_second_ = second;
    tm parts{};
    time_t stamp = second;
    ::gmtime_r(&stamp, &parts);
    char text[64];
    date_.assign(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
  }
  return date_;
}

struct Watch::Descriptor {
  StreamDescriptor stream;

  template <typename Call>
  void wait(StreamDescriptor::wait_type type, std::shared_ptr<ReadyHandler> handler, Call call) {
    stream.async_wait(type, [handler = std::move(handler), call](Code fault) {
      if (fault == asio::error::operation_aborted) return;
      try {
        call(*handler);
      } catch (const std::exception& thrown) {
        handler->on_fault(thrown.what());
      }
    });
  }
};

Watch::Watch(EventLoop& loop, int fd)
    : descriptor_(std::make_unique<Descriptor>(Descriptor{StreamDescriptor(loop.asio_->context, fd)})) {}

Watch::~Watch() {
  close();
}

// native_handle() is not const in Asio.
int Watch::fd() const {
  return descriptor_->stream.native_handle();
}
bool Watch::is_open() const {
  return descriptor_->stream.is_open();
}

void Watch::wait_readable(std::shared_ptr<ReadyHandler> handler) {
  descriptor_->wait(StreamDescriptor::wait_read, std::move(handler), [](ReadyHandler& h) { h.on_readable(); });
}

void Watch::wait_writable(std::shared_ptr<ReadyHandler> handler) {
  descriptor_->wait(StreamDescriptor::wait_write, std::move(handler), [](ReadyHandler& h) { h.on_writable(); });
}

void Watch::close() {
  Code ignored;  // Nothing is buffered in user space that a failing close could lose.
  descriptor_->stream.close(ignored);
}

void run_guarded(const std::function<void()>& fn, std::string_view where) {
  try {
    fn();
  } catch (const std::exception& fault) {
    spdlog::error("{}: a callback threw: {}", where, fault.what());
  }
}

}  // namespace millrace::http
