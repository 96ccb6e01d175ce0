#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Pieces of a request target (RFC 9112 section 3.2, RFC 3986).
namespace millrace::http {

/// Bytes of %XX and, in a query, '+' as a space. Nothing for a broken escape, a control character, or what is not
/// UTF-8: such names and values lead only to surprises later (in logs, keys, other encodings).
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space = false);

/// The pieces between the separators; "" gives one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The last path segment cut at its last colon, undecoded: "{group}:resetOffsets" -> {group}, resetOffsets.
struct VerbSplit {
  std::string_view id;
  std::string_view verb;  ///< "" without a colon
};
VerbSplit split_verb(std::string_view last_segment);

/// The candidate most like `name`, for "did you mean"; "" when none is near.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& candidates);

/// How many bytes at the start of `text` make one well-formed UTF-8 character (RFC 3629); 0 when they do not.
/// `text` is not empty.
size_t utf8_length(std::string_view text);

}  // namespace millrace::http
