#include "bus/home.h"

#include <spdlog/fmt/fmt.h>

namespace millrace::bus {

Result<Home> Home::make(HomeKind kind, std::string_view id) {
  if (id.size() > kMaxIdBytes)
    return fail(ErrorKind::kInvalidArgument, "INVALID_HOME",
                fmt::format("an id of {} bytes is too long; at most {} are taken", id.size(), kMaxIdBytes));
  if (id.find('\0') != std::string_view::npos)
    return fail(ErrorKind::kInvalidArgument, "INVALID_HOME", fmt::format("the id {} has a NUL byte", to_hex(id)));
  Bytes prefix;
  prefix.reserve(id.size() + 2);
  prefix += static_cast<char>(kind);
  prefix += id;
  prefix += '\0';
  return Home(std::move(prefix));
}

}  // namespace millrace::bus
