#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace millrace::crypto {

/// Standard alphabet with padding (RFC 4648, section 4).
std::string to_base64(ByteView bytes);
/// Strict: padding required, nothing else allowed. nullopt when `text` is not base64.
std::optional<Bytes> from_base64(std::string_view text);

}  // namespace millrace::crypto
