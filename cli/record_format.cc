#include "cli/record_format.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/json_text.h"
#include "cli/record_text.h"
#include "cli/start_position.h"

namespace millrace::cli {
namespace {

constexpr std::string_view kLetters = "sktpoThSK%";

std::string headers_of(std::string_view array) {
  std::string out;
  for (std::string_view header : json_elements(array).value_or(std::vector<std::string_view>())) {
    auto members = json_members(header).value_or(JsonMembers());
    std::string_view value = json_member(members, "value");
    if (!out.empty()) out += ',';
    out += json_scalar(json_member(members, "name")) + "=";
    if (value.starts_with('{')) {
      out += bytes_of(value).value_or(std::nullopt).value_or("");
    } else if (value != "null") {
      out += json_scalar(value);
    }
  }
  return out;
}

std::string time_of(std::string_view timestamp) {
  auto ms = parse_time(json_scalar(timestamp));
  return ms ? std::to_string(*ms) : std::string();
}

}  // namespace

Result<RecordFormat> RecordFormat::parse(std::string_view format) {
  auto text = unescape(format);
  if (!text) return fail(ErrorKind::kInvalidArgument, "INVALID_FORMAT", "the format has an unknown escape");
  RecordFormat parsed;
  std::string literal;
  for (size_t i = 0; i < text->size(); ++i) {
    if ((*text)[i] != '%') {
      literal += (*text)[i];
      continue;
    }
    char letter = i + 1 < text->size() ? (*text)[++i] : '\0';
    if (letter == '\0' || kLetters.find(letter) == std::string_view::npos)
      return fail(ErrorKind::kInvalidArgument, "INVALID_FORMAT",
                  fmt::format("the format has '%{}', but knows %s %k %t %p %o %T %h %S %K %%",
                              letter == '\0' ? std::string() : std::string(1, letter)));
    if (letter == '%') {
      literal += '%';
      continue;
    }
    parsed.parts_.push_back({'\0', std::move(literal)});
    parsed.parts_.push_back({letter, {}});
    literal.clear();
  }
  parsed.parts_.push_back({'\0', std::move(literal)});
  return parsed;
}

Status RecordFormat::append(std::string& out, std::string_view topic, std::string_view record) const {
  auto members = json_members(record);
  if (!members) return fail(ErrorKind::kInvalidArgument, "INVALID_RECORD", "a record is no object");
  auto key = bytes_of(json_member(*members, "key"));
  if (!key) return tl::unexpected(std::move(key.error()));
  auto value = bytes_of(json_member(*members, "value"));
  if (!value) return tl::unexpected(std::move(value.error()));
  auto size_of = [](const std::optional<std::string>& bytes) {
    return bytes ? std::to_string(bytes->size()) : std::string("-1");
  };
  for (const Part& part : parts_) {
    switch (part.letter) {
      case 's':
        out += value->value_or("");
        break;
      case 'k':
        out += key->value_or("");
        break;
      case 't':
        out += topic;
        break;
      case 'p':
        out += json_scalar(json_member(*members, "partition"));
        break;
      case 'o':
        out += json_scalar(json_member(*members, "offset"));
        break;
      case 'T':
        out += time_of(json_member(*members, "timestamp"));
        break;
      case 'h':
        out += headers_of(json_member(*members, "headers"));
        break;
      case 'S':
        out += size_of(*value);
        break;
      case 'K':
        out += size_of(*key);
        break;
      default:
        out += part.text;
    }
  }
  return {};
}

}  // namespace millrace::cli
