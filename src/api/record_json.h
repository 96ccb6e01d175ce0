#pragma once

#include <string>

#include "api/json.h"
#include "bus/record_batch.h"

/// Keys and values of records as JSON: {"type":"BINARY"|"STRING"|"JSON","data":..}, as in Kafka REST v3, or the
/// shorthand: a string stands for its bytes, null for none, any other JSON for its compact text.
namespace millrace::api {

/// The bytes that `value` stands for; nullopt for null. Errors: kInvalidArgument INVALID_RECORD_VALUE.
Result<std::optional<Bytes>> to_bytes(const Json& value, const std::string& pointer);

/// Appends `bytes` as an envelope: JSON when they are a JSON object or array, else STRING when they are UTF-8, else
/// BINARY.
void append_value(std::string& out, const std::optional<ByteView>& bytes);

/// Appends {"partition","offset","timestamp","timestampMs","key","value","headers"}.
void append_record(std::string& out, uint32_t partition, const bus::RecordView& record);

}  // namespace millrace::api
