#pragma once

#include <string>
#include <string_view>

#include "http/request.h"

namespace millrace::http {

/// What the session knows of an answer beside the handler's Response.
struct ResponseContext {
  int version = 11;
  bool keep_alive = true;
  bool streaming = false;  ///< length unknown: chunked on 1.1, until close on 1.0
  std::string_view date = {};
  std::string_view request_id = {};
  std::string_view cors_origin = {};
};

/// Status line and fields, with the empty line. What a handler put into a field cannot break out of it.
std::string format_head(const Response& response, const ResponseContext& context);

/// Whether a status may have a body at all (not 1xx, 204, 304).
bool has_body(int status);

}  // namespace millrace::http
