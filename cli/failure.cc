#include "cli/failure.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace millrace::cli {
namespace {

constexpr size_t kMaxShownBody = 300;

// A server's words go to a terminal: control characters must not act there.
std::string printable(std::string_view text, size_t limit) {
  std::string out;
  while (!text.empty() && out.size() < limit) {
    size_t bytes = utf8_sequence(text);
    bool control = bytes == 0 || static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f;
    out += control ? std::string_view(" ") : text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  while (out.ends_with(' ')) out.pop_back();
  return text.empty() ? out : out + "...";
}

std::string field(const nlohmann::json& object, const char* name) {
  auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The part of a transport error behind "... SERVER: ".
std::string_view reason_of(const Error& error, std::string_view server) {
  std::string_view text = error.message;
  size_t at = text.find(server);
  if (at == std::string_view::npos) return text;
  text.remove_prefix(at + server.size());
  return text.starts_with(": ") ? text.substr(2) : text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

}  // namespace

Problem Problem::of(const http::Client::Response& response) {
  Problem problem;
  problem.status = response.status;
  auto json = nlohmann::json::parse(response.body, nullptr, false);
  if (json.is_object() && json.contains("code")) {
    problem.code = field(json, "code");
    problem.detail = field(json, "detail");
    problem.retry = field(json, "retry");
    problem.pointer = field(json, "pointer");
    if (problem.detail.empty()) problem.detail = field(json, "title");
  } else {
    problem.detail = fmt::format("the server answered {}: {}", response.status, response.body);
    // Something between us and the node that has no backend at the moment.
    if (response.status == 502 || response.status == 503 || response.status == 504) problem.retry = "unknown";
  }
  return problem;
}

Failure failure_of(const Problem& problem, bool changes) {
  std::string text = printable(problem.detail, kMaxShownBody * 4);
  if (!problem.code.empty()) {
    std::string where = problem.pointer.empty() ? "" : ", at " + printable(problem.pointer, kMaxShownBody);
    text += fmt::format(" ({}{})", printable(problem.code, kMaxShownBody), where);
  }
  bool unknown = changes && problem.retry == "unknown";
  if (unknown) text += "; it may or may not have been done";
  return {unknown ? kExitUnknown : kExitRefused, std::move(text), problem.pointer};
}

Failure failure_of(const Error& error, std::string_view server, bool changes) {
  if (error.code == "INTERRUPTED") return {kExitInterrupted, {}};
  if (error.code == "INVALID_URL") return {kExitUsage, error.message};
  if (error.code == "CONNECT_FAILED")
    return {kExitUnreachable,
            fmt::format("cannot reach {}: {}; is millraced running?", server, reason_of(error, server))};
  bool answered = error.code == "BAD_RESPONSE" || error.code == "RESPONSE_TOO_LARGE";
  if (changes && answered) return {kExitUnknown, error.message + "; it may or may not have been done"};
  if (error.kind == ErrorKind::kUnknown) return {kExitUnknown, error.message};
  if (error.code == "BAD_RESPONSE")
    return {kExitUnreachable, fmt::format("{}; is a Millrace node there?", error.message)};
  return {kExitUnreachable, error.message};
}

}  // namespace millrace::cli
