#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "http/client.h"

namespace millrace::tests {

/// Where the daemon listens now; clients wait here while it is down.
class Whereabouts {
 public:
  void up(uint16_t port) {
    std::lock_guard lock(mutex_);
    port_ = port;
    changed_.notify_all();
  }
  void down() {
    std::lock_guard lock(mutex_);
    port_ = 0;
  }
  void end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  /// 0 when there is nothing more to do.
  uint16_t wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return port_ != 0 || ended_; });
    return ended_ && port_ == 0 ? 0 : port_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint16_t port_ = 0;
  bool ended_ = false;
};

/// A client that finds the daemon again. Answers are those that came; a lost connection is nullopt.
class Connection {
 public:
  explicit Connection(Whereabouts& where) : where_(where) {}

  std::optional<http::Client::Response> request(std::string_view method, const std::string& target,
                                                const http::Client::Fields& fields = {}, std::string_view body = {}) {
    uint16_t port = where_.wait();
    if (port == 0) return std::nullopt;
    if (port != port_) {
      auto client = http::Client::create("127.0.0.1:" + std::to_string(port));
      client_.emplace(std::move(*client));
      port_ = port;
    }
    auto response = client_->request(method, target, fields, body);
    if (response) return std::move(*response);
    port_ = 0;
    return std::nullopt;
  }

 private:
  Whereabouts& where_;
  std::optional<http::Client> client_;
  uint16_t port_ = 0;
};

}  // namespace millrace::tests
