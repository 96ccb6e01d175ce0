#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cli/failure.h"
#include "cli/interrupts.h"
#include "http/client.h"

namespace millrace::cli {

/// How often and how patiently a request that may be repeated is repeated. The defaults bridge about 40 seconds: the
/// restart of a node.
struct RetryPolicy {
  int most = 20;
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds longest_pause{2'000};  ///< the pause doubles up to here
  /// What a server's Retry-After may ask for.
  std::chrono::milliseconds longest_wish{10'000};

  /// Before the repetition with that number, from 1 on.
  std::chrono::milliseconds pause(int repetition) const;
};

/// The node as the commands see it: a client whose answers are 2xx or a Failure, ended by an interrupt. One thread.
class Remote {
 public:
  using Response = http::Client::Response;
  using Fields = http::Client::Fields;
  /// Called before the pause of each repetition, with what went wrong.
  using OnRetry = std::function<void(const Failure& why)>;

  static Outcome<std::unique_ptr<Remote>> create(std::string_view server, std::chrono::milliseconds timeout,
                                                 Interrupts& interrupts);
  ~Remote();
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  /// Any answer, also a refusal; fails only when there is none.
  Outcome<Response> ask(std::string_view method, std::string_view target, std::string_view body = {});
  /// Once, and 2xx.
  Outcome<Response> call(std::string_view method, std::string_view target, std::string_view body = {});
  Outcome<Response> get(std::string_view target) { return call("GET", target); }
  /// For what may be repeated: a GET, or a request with an idempotency key. Lost connections, time-outs and problems
  /// that invite a retry are repeated within the policy. When a try may have taken effect and no later one succeeds,
  /// the exit code is kExitUnknown, whatever the last try came to.
  Outcome<Response> persist(std::string_view method, std::string_view target, const Fields& fields,
                            std::string_view body, const RetryPolicy& policy, const OnRetry& on_retry = {});

  http::Client& client() { return client_; }
  const std::string& server() const { return client_.url(); }
  Interrupts& interrupts() { return interrupts_; }

 private:
  Remote(http::Client client, Interrupts& interrupts);

  http::Client client_;
  Interrupts& interrupts_;
};

/// How long the server asks to be left alone; 0 when it does not say.
std::chrono::milliseconds retry_after(const http::Client::Response& response);
/// Whether another connection may fare better.
bool is_passing(const Error& error);

}  // namespace millrace::cli
