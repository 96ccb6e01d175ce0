#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace::cli {

/// RFC 4648, section 4, with padding: how bytes that are no text travel in JSON.
std::string base64_encode(std::string_view bytes);
/// nullopt when a character, the length or the padding is wrong.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace millrace::cli
