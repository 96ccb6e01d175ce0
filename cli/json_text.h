#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::cli {

/// JSON cut into pieces without being rebuilt, so that numbers of any size, the order of fields and every escape come
/// out as they went in. The text must have passed is_json(); the pieces are views into it.
using JsonMembers = std::vector<std::pair<std::string, std::string_view>>;

/// One whole JSON value and nothing else but white space around it.
bool is_json(std::string_view text);
/// The members of an object in their order, names decoded; nullopt when it is no object. Doubled names stay doubled.
std::optional<JsonMembers> json_members(std::string_view text);
/// The elements of an array; nullopt when it is none.
std::optional<std::vector<std::string_view>> json_elements(std::string_view text);
/// The first member of that name; "" when there is none.
std::string_view json_member(const JsonMembers& members, std::string_view name);
/// The decoded value of a JSON string, or the text of anything else.
std::string json_scalar(std::string_view text);

/// The text as a JSON string. It must be UTF-8.
void append_json_string(std::string& out, std::string_view text);

}  // namespace millrace::cli
