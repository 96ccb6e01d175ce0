#pragma once

#include "api/json.h"
#include "bus/topic.h"

namespace millrace::proto {
class TopicConfig;
}

namespace millrace::api {

/// Applies {"retention.ms": 1000, "cleanup.policy": "compact", "segment.bytes": null} to what a topic chose; null goes
/// back to the default. Errors: kInvalidArgument UNKNOWN_CONFIG, INVALID_CONFIG, naming it and what would be right.
Status apply_configs(const Json& configs, const std::string& pointer, proto::TopicConfig& chosen);

/// Appends all settings under their Kafka names, values as strings: {"retention.ms":"604800000",...}.
void append_configs(std::string& out, const bus::TopicSettings& settings);

}  // namespace millrace::api
