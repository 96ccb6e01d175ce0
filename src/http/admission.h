#pragma once

#include <optional>
#include <string>
#include <variant>

#include "http/request_parser.h"
#include "http/server_context.h"

namespace millrace::http {

/// What becomes of a request once its header is complete and well framed.
struct Admitted {
  Method method = Method::kGet;  ///< as sent: kHead stays kHead
  const Route* route = nullptr;
  Params params;
  uint64_t max_body = 0;
};
/// Answered at once, without a handler. With `fatal`, the connection closes after it.
struct Answered {
  Response response;
  bool fatal = false;
};

/// Everything the header decides: who asks (AccessPolicy), what for (Router), and whether its body may come (rule,
/// declared length, media type). `local`: over the Unix socket. Counts what it turns away.
std::variant<Admitted, Answered> admit(const RequestHead& head, const ServerContext& context, bool local);

/// `refusal` as an answer; counted.
Answered answer(const Refusal& refusal, Stats& stats);

/// "" unless the request comes from a configured foreign origin, which must then be named in the answer.
std::string cors_origin(const RequestHead& head, const AccessPolicy& policy);

}  // namespace millrace::http
