#pragma once

#include <string>
#include <string_view>

#include "http/stats.h"

namespace millrace::http {

/// Why a request is turned away before its handler.
struct Refusal {
  int status = 400;
  std::string_view code = "MALFORMED_REQUEST";
  std::string detail;
  Rejected reason = Rejected::kBadRequest;
  /// Where the next request would start is not certain: answer and close.
  bool fatal = true;
};

}  // namespace millrace::http
