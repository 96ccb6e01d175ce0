#include "api/record_json.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "crypto/base64.h"

namespace millrace::api {
namespace {

tl::unexpected<Error> invalid(std::string message, std::string pointer) {
  return fail(ErrorKind::kInvalidArgument, "INVALID_RECORD_VALUE", std::move(message), std::move(pointer));
}

/// Exactly {"type": one of ours, "data": ..}; anything else is a value of the client's own.
const std::string* envelope_type(const Json& value) {
  if (!value.is_object() || value.size() != 2 || !value.contains("data")) return nullptr;
  auto type = value.find("type");
  if (type == value.end() || !type->is_string()) return nullptr;
  const auto& name = type->get_ref<const std::string&>();
  return name == "BINARY" || name == "STRING" || name == "JSON" ? &name : nullptr;
}

}  // namespace

Result<std::optional<Bytes>> to_bytes(const Json& value, const std::string& pointer) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return std::optional<Bytes>(value.get_ref<const std::string&>());
  const std::string* type = envelope_type(value);
  if (type == nullptr) return std::optional<Bytes>(value.dump());
  const Json& data = value.at("data");
  if (*type == "JSON") return std::optional<Bytes>(data.dump());
  if (data.is_null()) return std::nullopt;
  if (!data.is_string()) return invalid(fmt::format("data of type {} must be a string", *type), pointer + "/data");
  const auto& text = data.get_ref<const std::string&>();
  if (*type == "STRING") return std::optional<Bytes>(text);
  auto bytes = crypto::from_base64(text);
  if (!bytes) return invalid("data of type BINARY must be base64 (standard alphabet, padded)", pointer + "/data");
  return bytes;
}

void append_value(std::string& out, const std::optional<ByteView>& bytes) {
  if (!bytes) {
    out += "null";
  } else if (!bytes->empty() && (bytes->front() == '{' || bytes->front() == '[') && is_json(*bytes)) {
    out += R"({"type":"JSON","data":)";
    out += *bytes;
    out += '}';
  } else if (is_utf8(*bytes)) {
    out += R"({"type":"STRING","data":)";
    append_string(out, *bytes);
    out += '}';
  } else {
    out += R"({"type":"BINARY","data":")";
    out += crypto::to_base64(*bytes);
    out += R"("})";
  }
}

void append_record(std::string& out, uint32_t partition, const bus::RecordView& record) {
  out += R"({"partition":)";
  out += std::to_string(partition);
  out += R"(,"offset":)";
  append_integer_string(out, record.offset);
  out += R"(,"timestamp":)";
  if (auto time = format_time(record.timestamp_ms))
    append_string(out, *time);
  else
    out += "null";
  out += R"(,"timestampMs":)";
  append_integer_string(out, record.timestamp_ms);
  out += R"(,"key":)";
  append_value(out, record.key);
  out += R"(,"value":)";
  append_value(out, record.value);
  out += R"(,"headers":[)";
  for (size_t i = 0; i < record.headers.size(); ++i) {
    if (i > 0) out += ',';
    out += R"({"name":)";
    if (is_utf8(record.headers[i].name))
      append_string(out, record.headers[i].name);
    else
      append_string(out, to_hex(record.headers[i].name));
    out += R"(,"value":)";
    append_value(out, record.headers[i].value);
    out += '}';
  }
  out += "]}";
}

}  // namespace millrace::api
