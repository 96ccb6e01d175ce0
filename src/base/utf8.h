#pragma once

#include <cstddef>
#include <string_view>

namespace millrace {

/// Bytes of the well-formed UTF-8 sequence at the start of `text` (1 to 4), or 0 when there is none: empty, cut off,
/// overlong, a surrogate or beyond U+10FFFF (Unicode 15, table 3-7).
size_t utf8_sequence(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace millrace
