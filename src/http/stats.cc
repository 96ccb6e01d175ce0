#include "http/stats.h"

namespace millrace::http {

std::string_view to_string(Rejected reason) {
  switch (reason) {
    case Rejected::kBadRequest: return "bad_request";
    case Rejected::kHeaderTooLarge: return "header_too_large";
    case Rejected::kBodyTooLarge: return "body_too_large";
    case Rejected::kTimeout: return "timeout";
    case Rejected::kHost: return "host";
    case Rejected::kOrigin: return "origin";
    case Rejected::kContentType: return "content_type";
    case Rejected::kNotFound: return "not_found";
    case Rejected::kMethod: return "method";
    case Rejected::kParameter: return "parameter";
    case Rejected::kBodyMemory: return "body_memory";
    case Rejected::kTooManyConnections: return "too_many_connections";
    case Rejected::kTooManyFromAddress: return "too_many_from_address";
    case Rejected::kNoDescriptors: return "no_descriptors";
    case Rejected::kCount: break;
  }
  return "unknown";
}

}  // namespace millrace::http
