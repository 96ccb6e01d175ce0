#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.h"
#include "http/request.h"

namespace millrace::http {

enum class BodyRule { kNone, kOptional, kRequired };

/// One endpoint: how to find it, what it takes and answers, and the function. Schemas are JSON text (JSON Schema as
/// OpenAPI 3.1 has it), usually {"$ref":"#/components/schemas/Name"} for one that Router::add_schema was given.
struct Route {
  struct Answer {
    int status;
    std::string description;
    std::string schema = {};
    std::string content_type = "application/json";
  };
  struct Problem {
    ErrorKind kind;    ///< gives the status
    std::string code;  ///< as in Error::code
    std::string when;
  };

  Method method = Method::kGet;
  /// "/v1/topics/{topic}/records". A custom verb stands after the last colon: "/v1/groups/{group}:resetOffsets".
  std::string path = {};
  std::string operation_id = {};  ///< unique, camelCase: "listTopics"
  std::string tag = {};           ///< groups routes in the document: "topics"
  std::string summary = {};       ///< one line
  std::string description = {};
  std::vector<Param> params = {};
  BodyRule body = BodyRule::kNone;
  std::string request_schema = {};
  std::vector<std::string> consumes = {"application/json"};  ///< else 415
  size_t max_body = 0;                                       ///< bytes; 0: the server's maximum
  std::vector<Answer> answers = {};
  std::vector<Problem> problems = {};
  Handler handler = {};

  /// From the last byte of the request to the answer. Made by Router::add, recorded by the server, read by metrics.
  std::shared_ptr<Histogram> latency_ns = nullptr;
};

/// The table of routes. Filled once by main, then frozen and read by every io thread.
class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  /// Asserts that the path is well-formed, its parameters are declared, and nothing is registered twice.
  Route& add(Route route);
  /// A named schema for "#/components/schemas/NAME". Asserts that it is JSON and new.
  void add_schema(std::string name, std::string json);

  /// Adds GET /openapi.json, written from this table. Call it last.
  void add_openapi(std::string title, std::string version, std::string description);

  const std::vector<std::unique_ptr<Route>>& routes() const { return routes_; }
  const std::map<std::string, std::string>& schemas() const { return schemas_; }

  /// Where a request goes.
  struct Match {
    const Route* route = nullptr;
    Params params;      ///< of the path, query and headers; checked
    std::string allow;  ///< the methods of the path, for 405 and OPTIONS: "GET, HEAD, POST, OPTIONS"
  };
  /// `target` is the request target, percent-encoded, with its query. HEAD finds GET's route. Errors are ready to be
  /// sent: 404 NO_SUCH_PATH, 400 INVALID_TARGET, UNKNOWN_PARAMETER, DOUBLED_PARAMETER, INVALID_PARAMETER,
  /// MISSING_PARAMETER. A known path with another method is no error: `route` is null and `allow` set.
  Result<Match> find(Method method, std::string_view target, const Headers& headers) const;

 private:
  struct Node;
  static Status take_query(std::string_view query, const Route& route, Params& params);
  static Status take_headers(const Headers& headers, const Route& route, Params& params);
  static Status unknown_parameter(std::string_view name, const Route& route);

  std::unique_ptr<Node> root_;
  std::vector<std::unique_ptr<Route>> routes_;
  std::map<std::string, std::string> schemas_;
};

/// The OpenAPI 3.1 document of the table.
std::string openapi_document(const Router& router, std::string_view title, std::string_view version,
                             std::string_view description);

}  // namespace millrace::http
