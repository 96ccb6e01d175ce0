#include "http/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "http/problem.h"

namespace millrace::http {
namespace {

std::optional<Method> parse_method(std::string_view text) {
  for (Method method :
       {Method::kGet, Method::kHead, Method::kPost, Method::kPut, Method::kPatch, Method::kDelete, Method::kOptions})
    if (text == to_string(method)) return method;
  return std::nullopt;
}

Rejected reason_of_error(const Error& error) {
  return error.kind == ErrorKind::kNotFound ? Rejected::kNotFound : Rejected::kParameter;
}

// RFC 9110 section 9.3.7, and the preflight of the Fetch standard for a configured origin.
Answered options_answer(const RequestHead& head, const ServerContext& context, const std::string& allow) {
  Response response = Response::no_content();
  response.headers.add("Allow", allow);
  if (!cors_origin(head, context.policy).empty() && head.headers.find("Access-Control-Request-Method")) {
    response.headers.add("Access-Control-Allow-Methods", allow);
    if (auto wanted = head.headers.find("Access-Control-Request-Headers"))
      response.headers.add("Access-Control-Allow-Headers", *wanted);
    response.headers.add("Access-Control-Max-Age", "600");
  }
  return {std::move(response), false};
}

Answered method_not_allowed(const RequestHead& head, const std::string& allow, Stats& stats) {
  stats.reject(Rejected::kMethod);
  Response response = problem(405, "METHOD_NOT_ALLOWED",
                              fmt::format("{} is not possible here; this path takes {}", head.method, allow));
  response.headers.add("Allow", allow);
  return {std::move(response), false};
}

bool takes_media_type(const Route& route, std::string_view type) {
  return std::any_of(route.consumes.begin(), route.consumes.end(),
                     [&](const std::string& taken) { return iequals(taken, type); });
}

// A browser sends other than these few types across sites only after asking first, so the check is also a guard
// against forged requests.
std::optional<Refusal> check_body(const RequestHead& head, const Route& route, uint64_t max_body) {
  if (!head.has_body()) {
    if (route.body != BodyRule::kRequired) return std::nullopt;
    return Refusal{400, "BODY_MISSING", "the request needs a body", Rejected::kBadRequest, false};
  }
  if (route.body == BodyRule::kNone)
    return Refusal{400, "BODY_NOT_ALLOWED", fmt::format("{} {} takes no body", to_string(route.method), route.path),
                   Rejected::kBadRequest, false};
  Request probe;
  if (auto type = head.headers.find("Content-Type")) probe.headers.add("Content-Type", *type);
  std::string type = probe.content_type();
  if (head.headers.count("Content-Type") != 1 || !takes_media_type(route, type))
    return Refusal{415, "UNSUPPORTED_MEDIA_TYPE",
                   fmt::format("the body's Content-Type is '{}', but must be {}", type.substr(0, 80),
                               fmt::join(route.consumes, " or ")),
                   Rejected::kContentType, false};
  if (head.headers.count("Content-Encoding") > 0)
    return Refusal{415, "UNSUPPORTED_MEDIA_TYPE", "a Content-Encoding is not supported", Rejected::kContentType, false};
  if (head.content_length.value_or(0) > max_body)
    return Refusal{413, "BODY_TOO_LARGE",
                   fmt::format("the body has {} bytes; at most {} are taken", *head.content_length, max_body),
                   Rejected::kBodyTooLarge, true};
  return std::nullopt;
}

}  // namespace

Answered answer(const Refusal& refusal, Stats& stats) {
  stats.reject(refusal.reason);
  Retry retry = refusal.status == 408 || refusal.status == 429 || refusal.status == 503 ? Retry::kSafe : Retry::kNo;
  return {problem(refusal.status, refusal.code, refusal.detail, retry), refusal.fatal};
}

std::string cors_origin(const RequestHead& head, const AccessPolicy& policy) {
  auto origin = head.headers.find("Origin");
  return origin && policy.is_foreign_but_allowed(*origin) ? std::string(*origin) : std::string();
}

std::variant<Admitted, Answered> admit(const RequestHead& head, const ServerContext& context, bool local) {
  Stats& stats = *context.stats;
  if (auto refusal = context.policy.check(head.headers, local)) return answer(*refusal, stats);
  auto method = parse_method(head.method);
  if (!method) {
    stats.reject(Rejected::kMethod);
    return Answered{
        problem(501, "METHOD_UNKNOWN", fmt::format("the method '{}' is not known", head.method.substr(0, 40))), false};
  }
  if (*method == Method::kOptions && head.target == "*")
    return options_answer(head, context, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

  auto match = context.router->find(*method, head.target, head.headers);
  if (!match) {
    stats.reject(reason_of_error(match.error()));
    return Answered{problem(match.error()), false};
  }
  if (*method == Method::kOptions) return options_answer(head, context, match->allow);
  if (match->route == nullptr) return method_not_allowed(head, match->allow, stats);
  Admitted admitted{*method, match->route, std::move(match->params), context.options.max_body_bytes};
  if (match->route->max_body > 0) admitted.max_body = std::min<uint64_t>(admitted.max_body, match->route->max_body);
  if (auto refusal = check_body(head, *match->route, admitted.max_body)) return answer(*refusal, stats);
  return admitted;
}

}  // namespace millrace::http
