#include "cli/record_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "cli/json_text.h"
#include "cli/start_position.h"
#include "crypto/base64.h"

namespace millrace::cli {
namespace {

void append_bytes(std::string& out, std::string_view bytes) {
  if (is_utf8(bytes)) return append_json_string(out, bytes);
  out.append(R"({"type":"BINARY","data":")").append(crypto::to_base64(bytes)).append("\"}");
}

Result<std::string> plain_record(std::string_view line, const std::optional<std::string>& separator) {
  std::string out = "{";
  if (separator) {
    size_t at = line.find(*separator);
    if (at == std::string_view::npos)
      return fail(ErrorKind::kInvalidArgument, "NO_KEY_SEPARATOR", "it has no key separator");
    out += "\"key\":";
    append_bytes(out, line.substr(0, at));
    out += ',';
    line.remove_prefix(at + separator->size());
  }
  out += "\"value\":";
  append_bytes(out, line);
  return out + '}';
}

Result<std::string> json_record(std::string_view line, bool repartition) {
  auto members = is_json(line) ? json_members(line) : std::nullopt;
  if (!members) return fail(ErrorKind::kInvalidArgument, "NOT_JSON", "it is no JSON object");
  const bool has_ms =
      std::any_of(members->begin(), members->end(), [](const auto& m) { return m.first == "timestampMs"; });
  std::string out = "{";
  for (const auto& [name, value] : *members) {
    // Of what a consumer prints: the offset is another one here, and the time is there twice (once for any reader, once
    // for those times that have no date).
    if (name == "offset" || (repartition && name == "partition") || (name == "timestamp" && has_ms)) continue;
    if (out.size() > 1) out += ',';
    const bool is_time = name == "timestamp" || name == "timestampMs";
    append_json_string(out, is_time ? "timestamp" : name);
    out += ':';
    if (!is_time || !value.starts_with('"')) {
      out += value;
      continue;
    }
    std::string text = json_scalar(value);
    auto time = parse_time(text);
    if (!time && parse_number(text)) time = static_cast<int64_t>(*parse_number(text));
    if (!time)
      return fail(ErrorKind::kInvalidArgument, "INVALID_TIMESTAMP", fmt::format("its timestamp '{}' is no time", text));
    out += std::to_string(*time);
  }
  return out + '}';
}

}  // namespace

Result<std::optional<std::string>> RecordText::record_of(std::string_view line) const {
  if (json && line.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
  auto record = json ? json_record(line, repartition) : plain_record(line, key_separator);
  if (!record) return tl::unexpected(std::move(record.error()));
  return std::optional(std::move(*record));
}

Result<std::optional<std::string>> bytes_of(std::string_view envelope) {
  if (envelope.empty() || envelope == "null") return std::nullopt;
  auto members = json_members(envelope);
  if (!members) return fail(ErrorKind::kInvalidArgument, "INVALID_RECORD", "a key or value is no object");
  std::string type = json_scalar(json_member(*members, "type"));
  std::string_view data = json_member(*members, "data");
  if (type == "JSON") return std::string(data);
  if (type == "STRING") return json_scalar(data);
  auto bytes = type == "BINARY" ? crypto::from_base64(json_scalar(data)) : std::nullopt;
  if (!bytes)
    return fail(ErrorKind::kInvalidArgument, "INVALID_RECORD", fmt::format("unreadable data of type '{}'", type));
  return bytes;
}

}  // namespace millrace::cli
