#include "cli/remote.h"

#include <algorithm>
#include <charconv>

namespace millrace::cli {
namespace {

/// One try that did not succeed.
struct Setback {
  Failure failure;
  bool retriable = false;
  std::chrono::milliseconds wish{0};
};

Setback setback_of(const Result<http::Client::Response>& result, const std::string& server, bool changes) {
  if (!result) return {failure_of(result.error(), server, changes), is_passing(result.error()), {}};
  Problem problem = Problem::of(*result);
  return {failure_of(problem, changes), problem.retriable(), retry_after(*result)};
}

}  // namespace

std::chrono::milliseconds RetryPolicy::pause(int repetition) const {
  auto pause = first_pause;
  for (int i = 1; i < repetition && pause < longest_pause; ++i) pause *= 2;
  return std::min(pause, longest_pause);
}

std::chrono::milliseconds retry_after(const http::Client::Response& response) {
  std::string_view text = response.headers.find("Retry-After").value_or("");
  uint32_t seconds = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return fault == std::errc() ? std::chrono::seconds(seconds) : std::chrono::seconds(0);
}

bool is_passing(const Error& error) {
  return error.code == "CONNECT_FAILED" || error.code == "CONNECTION_LOST" || error.code == "TIMED_OUT";
}

Remote::Remote(http::Client client, Interrupts& interrupts) : client_(std::move(client)), interrupts_(interrupts) {
  interrupts_.on_raise([this] { client_.interrupt(); });
}

Remote::~Remote() {
  interrupts_.on_raise(nullptr);
}

Outcome<std::unique_ptr<Remote>> Remote::create(std::string_view server, std::chrono::milliseconds timeout,
                                                Interrupts& interrupts) {
  http::Client::Options options;
  options.connect_timeout = std::min(timeout, options.connect_timeout);
  options.idle_timeout = timeout;
  auto client = http::Client::create(server, options);
  if (!client) return tl::unexpected(failure_of(client.error(), server, false));
  return std::unique_ptr<Remote>(new Remote(std::move(*client), interrupts));
}

Outcome<Remote::Response> Remote::ask(std::string_view method, std::string_view target, std::string_view body) {
  auto result = client_.request(method, target, {}, body);
  if (!result) return tl::unexpected(failure_of(result.error(), server(), method != "GET"));
  return std::move(*result);
}

Outcome<Remote::Response> Remote::call(std::string_view method, std::string_view target, std::string_view body) {
  auto answer = ask(method, target, body);
  if (!answer || answer->status / 100 == 2) return answer;
  return tl::unexpected(failure_of(Problem::of(*answer), method != "GET"));
}

Outcome<Remote::Response> Remote::persist(std::string_view method, std::string_view target, const Fields& fields,
                                          std::string_view body, const RetryPolicy& policy, const OnRetry& on_retry) {
  bool changes = method != "GET", unknown = false;
  for (int repetition = 1;; ++repetition) {
    auto result = client_.request(method, target, fields, body);
    if (result && result->status / 100 == 2) return std::move(*result);
    Setback setback = setback_of(result, server(), changes);
    if (setback.failure.exit == kExitInterrupted) return tl::unexpected(std::move(setback.failure));
    unknown = unknown || setback.failure.exit == kExitUnknown;
    if (!setback.retriable || repetition > policy.most) {
      if (unknown) setback.failure.exit = kExitUnknown;
      return tl::unexpected(std::move(setback.failure));
    }
    if (on_retry) on_retry(setback.failure);
    if (interrupts_.wait_for(std::max(policy.pause(repetition), std::min(setback.wish, policy.longest_wish))))
      return fails(kExitInterrupted);
  }
}

}  // namespace millrace::cli
