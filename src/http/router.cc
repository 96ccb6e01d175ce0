#include "http/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "http/target.h"

namespace millrace::http {
namespace {

constexpr size_t kMethods = 7;

tl::unexpected<Error> bad_target(std::string_view what, std::string_view text) {
  return fail(ErrorKind::kInvalidArgument, "INVALID_TARGET", fmt::format("{} in '{}'", what, text.substr(0, 200)));
}

bool is_capture(std::string_view segment) {
  return segment.starts_with('{') && segment.ends_with('}');
}

}  // namespace

/// One path segment. A literal child goes before the capturing one, and a dead end falls back to it.
struct Router::Node {
  using Methods = std::array<const Route*, kMethods>;

  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::unique_ptr<Node> capture;
  /// By custom verb; "" for the plain path.
  std::map<std::string, Methods, std::less<>> ends;

  const Methods* find(const std::vector<std::string_view>& segments, size_t at, std::string_view verb,
                      std::vector<std::string_view>& captured) const {
    if (at == segments.size()) {
      auto end = ends.find(verb);
      return end == ends.end() ? nullptr : &end->second;
    }
    if (auto child = literals.find(segments[at]); child != literals.end())
      if (const Methods* found = child->second->find(segments, at + 1, verb, captured)) return found;
    if (capture == nullptr || segments[at].empty()) return nullptr;
    captured.push_back(segments[at]);
    if (const Methods* found = capture->find(segments, at + 1, verb, captured)) return found;
    captured.pop_back();
    return nullptr;
  }

  Node& descend(std::string_view segment) {
    auto& child = is_capture(segment) ? capture : literals[std::string(segment)];
    if (child == nullptr) child = std::make_unique<Node>();
    return *child;
  }
};

Router::Router() : root_(std::make_unique<Node>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

Route& Router::add(Route route) {
  MILLRACE_ASSERT(route.path.starts_with('/'), "a route's path does not start with '/': " + route.path);
  MILLRACE_ASSERT(route.handler != nullptr, "a route has no handler: " + route.path);
  MILLRACE_ASSERT(route.method != Method::kHead && route.method != Method::kOptions,
                  "HEAD and OPTIONS are answered for every route: " + route.path);
  route.latency_ns = std::make_shared<Histogram>();
  auto owned = std::make_unique<Route>(std::move(route));
  for (const auto& other : routes_)
    MILLRACE_ASSERT(other->operation_id != owned->operation_id,
                    "an operation id is used twice: " + owned->operation_id);

  auto segments = split(std::string_view(owned->path).substr(1), '/');
  auto [id, verb] = split_verb(segments.back());
  segments.back() = id;
  std::set<std::string_view> captured;
  Node* node = root_.get();
  for (std::string_view segment : segments) {
    node = &node->descend(segment);
    if (!is_capture(segment)) continue;
    std::string_view name = segment.substr(1, segment.size() - 2);
    auto param = std::find_if(owned->params.begin(), owned->params.end(), [&](Param& p) { return p.name == name; });
    MILLRACE_ASSERT(param != owned->params.end(), "a path parameter is not declared: " + owned->path);
    MILLRACE_ASSERT(captured.insert(name).second, "a path parameter occurs twice: " + owned->path);
    param->in = Param::In::kPath;
    param->is_required = true;
  }
  // find() relies on the path's parameters standing first, in the order of the path.
  std::stable_partition(owned->params.begin(), owned->params.end(), [](Param& p) { return p.in == Param::In::kPath; });
  size_t at = 0;
  for (std::string_view segment : segments)
    if (is_capture(segment)) {
      std::string_view name = segment.substr(1, segment.size() - 2);
      auto begin = owned->params.begin() + static_cast<std::ptrdiff_t>(at++);
      std::iter_swap(begin, std::find_if(begin, owned->params.end(), [&](Param& p) { return p.name == name; }));
    }

  const Route*& slot = node->ends.try_emplace(std::string(verb)).first->second[static_cast<size_t>(owned->method)];
  MILLRACE_ASSERT(slot == nullptr, "a route is registered twice: " + owned->path);
  slot = owned.get();
  routes_.push_back(std::move(owned));
  return *routes_.back();
}

void Router::add_schema(std::string name, std::string json) {
  MILLRACE_ASSERT(nlohmann::json::accept(json), "a schema is not JSON: " + name);
  bool added = schemas_.emplace(std::move(name), std::move(json)).second;
  MILLRACE_ASSERT(added, "a schema is added twice");
}

Result<Router::Match> Router::find(Method method, std::string_view target, const Headers& headers) const {
  size_t mark = target.find('?');
  std::string_view path = target.substr(0, mark);
  std::string_view query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  if (!path.starts_with('/')) return bad_target("the path does not start with '/'", target);
  if (target.find('#') != std::string_view::npos) return bad_target("a fragment ('#') does not belong", target);

  auto segments = split(path.substr(1), '/');
  for (std::string_view segment : segments)
    if (segment == "." || segment == "..") return bad_target("a '.' or '..' segment does not belong", target);
  auto [id, verb] = split_verb(segments.back());
  segments.back() = id;
  std::vector<std::string_view> captured;
  const Node::Methods* methods = root_->find(segments, 0, verb, captured);
  if (methods == nullptr)
    return fail(ErrorKind::kNotFound, "NO_SUCH_PATH",
                fmt::format("there is nothing at '{}'; /openapi.json lists every path{}", path.substr(0, 200),
                            verb.empty() ? "" : " (a colon inside an id is written %3A)"));

  Match match;
  for (size_t i = 0; i < kMethods; ++i)
    if ((*methods)[i] != nullptr) {
      match.allow += std::string(to_string(static_cast<Method>(i))) + ", ";
      if (static_cast<Method>(i) == Method::kGet) match.allow += "HEAD, ";
    }
  match.allow += "OPTIONS";
  match.route = (*methods)[static_cast<size_t>(method == Method::kHead ? Method::kGet : method)];
  if (match.route == nullptr) return match;
  match.params.declared_ = &match.route->params;
  for (size_t i = 0; i < captured.size(); ++i) {
    auto text = percent_decode(captured[i]);
    if (!text) return bad_target("a broken percent-encoding, a control character or bytes that are not UTF-8", target);
    MILLRACE_TRY(match.params.take(match.route->params[i], std::move(*text)));
  }
  MILLRACE_TRY(take_query(query, *match.route, match.params));
  MILLRACE_TRY(take_headers(headers, *match.route, match.params));
  for (const Param& param : match.route->params)
    if (param.is_required && match.params.given(param.name) == nullptr)
      return fail(
          ErrorKind::kInvalidArgument, "MISSING_PARAMETER",
          fmt::format("the {} '{}' is missing: {}", param.in == Param::In::kHeader ? "header" : "query parameter",
                      param.name, param.description));
  return match;
}

Status Router::take_query(std::string_view query, const Route& route, Params& params) {
  if (query.empty()) return {};
  for (std::string_view piece : split(query, '&')) {
    size_t equals = std::min(piece.find('='), piece.size());
    auto name = percent_decode(piece.substr(0, equals), true);
    auto text = percent_decode(piece.substr(std::min(equals + 1, piece.size())), true);
    if (!name || !text)
      return bad_target("a broken percent-encoding, a control character or bytes that are not UTF-8", query);
    auto param = std::find_if(route.params.begin(), route.params.end(),
                              [&](const Param& p) { return p.in == Param::In::kQuery && p.name == *name; });
    if (param == route.params.end()) return unknown_parameter(*name, route);
    MILLRACE_TRY(params.take(*param, std::move(*text)));
  }
  return {};
}

Status Router::take_headers(const Headers& headers, const Route& route, Params& params) {
  for (const Param& param : route.params) {
    if (param.in != Param::In::kHeader) continue;
    for (size_t i = 0; i < headers.size(); ++i)
      if (iequals(headers.name(i), param.name)) MILLRACE_TRY(params.take(param, std::string(headers.value(i))));
  }
  return {};
}

Status Router::unknown_parameter(std::string_view name, const Route& route) {
  std::vector<std::string_view> known;
  for (const Param& param : route.params)
    if (param.in == Param::In::kQuery) known.push_back(param.name);
  std::string hint = "it takes none";
  if (std::string_view near = nearest_name(name, known); !near.empty())
    hint = fmt::format("did you mean '{}'?", near);
  else if (!known.empty())
    hint = fmt::format("it takes {}", fmt::join(known, ", "));
  return fail(ErrorKind::kInvalidArgument, "UNKNOWN_PARAMETER",
              fmt::format("{} {} has no query parameter '{}'; {}", to_string(route.method), route.path,
                          name.substr(0, 80), hint));
}

void Router::add_openapi(std::string title, std::string version, std::string description) {
  auto document = std::make_shared<std::string>();
  add({.method = Method::kGet,
       .path = "/openapi.json",
       .operation_id = "getOpenApi",
       .tag = "node",
       .summary = "This interface as an OpenAPI 3.1 document",
       .description = "Written from the table of routes that serves the requests.",
       .answers = {{200, "The OpenAPI document.", R"({"type":"object"})"}},
       .handler = answer_now([document](Request&) -> Result<Response> { return Response::json(200, *document); })});
  *document = openapi_document(*this, title, version, description);
}

}  // namespace millrace::http
