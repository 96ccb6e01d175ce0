#pragma once

#include <sys/socket.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/event_loop.h"
#include "http/options.h"
#include "http/session.h"
#include "http/stats.h"

namespace millrace::http {

/// An open descriptor that closes itself.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release();
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// A bound and listening socket.
struct Listening {
  UniqueFd fd;
  std::string url;   ///< "http://127.0.0.1:8480" or "unix:/path"
  std::string host;  ///< "127.0.0.1"; "" on a Unix socket
  uint16_t port = 0;
  std::filesystem::path path;  ///< of a Unix socket
};

/// Binds what `options` name. Errors: see Server::listen.
Result<std::vector<Listening>> open_listeners(const Options& options);

/// Removes the file of a Unix socket, if it is still ours.
void remove_socket_file(const Listening& listening);

/// Accepts on one listening socket. Out of descriptors, it uses a spare one to accept, say 503 and close, so that
/// neither the queue of the kernel nor this loop spins; when even that fails it pauses, and goes on when a session
/// closes or a timer comes. The loop's thread only; owned by the server.
class Acceptor final : public ReadyHandler, public std::enable_shared_from_this<Acceptor> {
 public:
  using OnAccept = std::function<void(UniqueFd, Peer)>;
  using AcceptCall = int (*)(int, sockaddr*, socklen_t*, int);

  /// `accept_call` is ::accept4; tests let it fail.
  Acceptor(std::shared_ptr<EventLoop> loop, Listening listening, std::shared_ptr<Stats> stats, OnAccept on_accept,
           AcceptCall accept_call = ::accept4);

  void start();
  /// Something that may have been short has become free.
  void resume();
  bool paused() const { return paused_; }
  void close();

  void on_readable() override;
  void on_writable() override {}
  void on_fault(std::string_view what) override;

 private:
  enum class TurnedAway { kOne, kNobodyThere, kFailed };

  bool accept_one();
  TurnedAway turn_one_away();
  void pause(int error);

  const std::shared_ptr<EventLoop> loop_;
  Listening listening_;
  const std::shared_ptr<Stats> stats_;
  const OnAccept on_accept_;
  const AcceptCall accept_;
  Watch watch_;
  UniqueFd spare_;
  bool paused_ = false;
  TimerQueue::Id timer_{0, 0};
  std::chrono::milliseconds backoff_;
};

}  // namespace millrace::http
