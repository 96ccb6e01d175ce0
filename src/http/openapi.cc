#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "http/problem.h"
#include "http/router.h"

namespace millrace::http {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kProblemSchema = R"({
  "type": "object",
  "description": "RFC 9457 problem details.",
  "required": ["type", "title", "status", "detail", "code", "retry"],
  "properties": {
    "type": {"type": "string", "description": "urn:millrace:problem:CODE"},
    "title": {"type": "string"},
    "status": {"type": "integer"},
    "detail": {"type": "string", "description": "What happened here, naming the thing and the value."},
    "code": {"type": "string", "description": "Stable; decide by this one."},
    "retry": {"type": "string", "enum": ["safe", "unknown", "no"],
              "description": "Whether the same request may be sent again. unknown: only with the same Idempotency-Key."},
    "pointer": {"type": "string", "description": "JSON pointer to the bad field of the request."}
  }
})";

Json parse_schema(const std::string& text, const Route& route) {
  Json schema = Json::parse(text, nullptr, false);
  MILLRACE_ASSERT(!schema.is_discarded(), "a schema is not JSON: " + route.operation_id);
  return schema;
}

void add_integer(const Param& param, Json& schema) {
  schema["type"] = "integer";
  schema["format"] = "int64";
  schema["minimum"] = param.low;
  if (param.high != std::numeric_limits<int64_t>::max()) schema["maximum"] = param.high;
  if (param.default_text) schema["default"] = param.default_number;
}

void add_text(const Param& param, Json& schema) {
  schema["type"] = "string";
  if (param.type == Param::Type::kDuration) schema["pattern"] = "^[0-9]+(ms|s|m|h|d)$";
  if (param.type == Param::Type::kSize) schema["pattern"] = "^[0-9]+(B|KB|MB|GB|TB)$";
  if (param.type == Param::Type::kString && param.low > 0) schema["minLength"] = param.low;
  if (param.type == Param::Type::kString && param.high != std::numeric_limits<int64_t>::max())
    schema["maxLength"] = param.high;
  if (!param.values.empty()) schema["enum"] = param.values;
  if (param.default_text) schema["default"] = *param.default_text;
}

std::string with_bounds(const Param& param) {
  bool bounded = param.high != std::numeric_limits<int64_t>::max();
  if (param.type == Param::Type::kDuration && bounded)
    return fmt::format("{} From {}ms to {}ms.", param.description, param.low, param.high);
  if (param.type == Param::Type::kSize && bounded)
    return fmt::format("{} From {}B to {}B.", param.description, param.low, param.high);
  return param.description;
}

Json parameter(const Param& param) {
  Json schema = Json::object();
  if (param.type == Param::Type::kInteger) {
    add_integer(param, schema);
  } else if (param.type == Param::Type::kBoolean) {
    schema["type"] = "boolean";
    if (param.default_text) schema["default"] = param.default_number != 0;
  } else {
    add_text(param, schema);
  }
  constexpr std::string_view kPlaces[] = {"path", "query", "header"};
  return {{"name", param.name},
          {"in", kPlaces[static_cast<size_t>(param.in)]},
          {"required", param.is_required},
          {"description", with_bounds(param)},
          {"schema", std::move(schema)}};
}

Json content_of(const std::string& type, Json schema) {
  return {{type, {{"schema", std::move(schema)}}}};
}

Json problem_answer(const std::string& description) {
  return {{"description", description},
          {"content", content_of("application/problem+json", {{"$ref", "#/components/schemas/Problem"}})}};
}

// The problems of one status share one entry, as OpenAPI wants it.
std::map<int, std::string> problems_by_status(const Route& route) {
  std::map<int, std::string> by_status;
  for (const Route::Problem& entry : route.problems) {
    std::string& text = by_status[problem_kind(entry.kind).status];
    text += fmt::format("{}`{}`: {}", text.empty() ? "" : "\n\n", entry.code, entry.when);
  }
  return by_status;
}

Json responses(const Route& route) {
  Json all = Json::object();
  for (const Route::Answer& answer : route.answers) {
    Json entry = {{"description", answer.description}};
    if (!answer.schema.empty()) entry["content"] = content_of(answer.content_type, parse_schema(answer.schema, route));
    all[std::to_string(answer.status)] = std::move(entry);
  }
  for (const auto& [status, text] : problems_by_status(route)) all[std::to_string(status)] = problem_answer(text);
  all["default"] = problem_answer("Any other problem; docs/http.md lists those that every path may answer.");
  return all;
}

Json operation(const Route& route) {
  Json out = {{"operationId", route.operation_id}, {"summary", route.summary}};
  if (!route.tag.empty()) out["tags"] = Json::array({route.tag});
  if (!route.description.empty()) out["description"] = route.description;
  Json params = Json::array();
  for (const Param& param : route.params) params.push_back(parameter(param));
  if (!params.empty()) out["parameters"] = std::move(params);
  if (route.body != BodyRule::kNone) {
    Json content = Json::object();
    for (const std::string& type : route.consumes) {
      Json schema = route.request_schema.empty() ? Json::object() : parse_schema(route.request_schema, route);
      content[type] = {{"schema", std::move(schema)}};
    }
    out["requestBody"] = {{"required", route.body == BodyRule::kRequired}, {"content", std::move(content)}};
  }
  out["responses"] = responses(route);
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

}  // namespace

std::string openapi_document(const Router& router, std::string_view title, std::string_view version,
                             std::string_view description) {
  Json document = {{"openapi", "3.1.0"},
                   {"info", {{"title", title}, {"version", version}, {"description", description}}},
                   {"servers", Json::array({{{"url", "/"}}})}};
  std::set<std::string> tags;
  Json paths = Json::object();
  for (const auto& route : router.routes()) {
    paths[route->path][lower(to_string(route->method))] = operation(*route);
    if (!route->tag.empty()) tags.insert(route->tag);
  }
  document["tags"] = Json::array();
  for (const std::string& tag : tags) document["tags"].push_back({{"name", tag}});
  document["paths"] = std::move(paths);
  Json schemas = {{"Problem", Json::parse(kProblemSchema)}};
  for (const auto& [name, text] : router.schemas()) schemas[name] = Json::parse(text);
  document["components"] = {{"schemas", std::move(schemas)}};
  return document.dump(2) + "\n";
}

}  // namespace millrace::http
