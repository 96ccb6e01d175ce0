#include "api/topic_configs.h"

#include <fmt/format.h>

#include <array>
#include <functional>

#include "proto/bus.pb.h"

namespace millrace::api {
namespace {

using proto::TopicConfig;

/// A config whose value is a number.
struct NumberConfig {
  std::string_view name;
  int64_t low, high;
  void (TopicConfig::*set)(int64_t);
  void (TopicConfig::*clear)();
  int64_t bus::TopicSettings::*value;
};

constexpr int64_t kMaxMs = 100ll * 365 * 24 * 3600 * 1000;
constexpr int64_t kMaxBytes = int64_t{1} << 50;

constexpr std::array kNumbers = {
    NumberConfig{"retention.ms", -1, kMaxMs, &TopicConfig::set_retention_ms, &TopicConfig::clear_retention_ms,
                 &bus::TopicSettings::retention_ms},
    NumberConfig{"retention.bytes", -1, kMaxBytes, &TopicConfig::set_retention_bytes,
                 &TopicConfig::clear_retention_bytes, &bus::TopicSettings::retention_bytes},
    NumberConfig{"segment.bytes", 1 << 20, int64_t{1} << 32, &TopicConfig::set_segment_bytes,
                 &TopicConfig::clear_segment_bytes, &bus::TopicSettings::segment_bytes},
    NumberConfig{"segment.ms", 1000, kMaxMs, &TopicConfig::set_segment_ms, &TopicConfig::clear_segment_ms,
                 &bus::TopicSettings::segment_ms},
    NumberConfig{"max.message.bytes", 1024, 8 << 20, &TopicConfig::set_max_message_bytes,
                 &TopicConfig::clear_max_message_bytes, &bus::TopicSettings::max_message_bytes},
    NumberConfig{"min.insync.replicas", 1, 1, &TopicConfig::set_min_insync_replicas,
                 &TopicConfig::clear_min_insync_replicas, &bus::TopicSettings::min_insync_replicas},
    NumberConfig{"delete.retention.ms", 0, kMaxMs, &TopicConfig::set_delete_retention_ms,
                 &TopicConfig::clear_delete_retention_ms, &bus::TopicSettings::delete_retention_ms},
};

constexpr std::string_view kCleanup = "cleanup.policy";
constexpr std::string_view kTimestamp = "message.timestamp.type";

tl::unexpected<Error> invalid(std::string message, const std::string& pointer) {
  return fail(ErrorKind::kInvalidArgument, "INVALID_CONFIG", std::move(message), pointer);
}

Status apply_number(const NumberConfig& config, const Json& value, const std::string& pointer, TopicConfig& chosen) {
  if (value.is_null()) {
    (chosen.*config.clear)();
    return {};
  }
  auto number = to_integer(value, pointer, config.low, config.high);
  if (!number) return invalid(fmt::format("{}: {}", config.name, number.error().message), pointer);
  (chosen.*config.set)(*number);
  return {};
}

Status apply_word(std::string_view name, const Json& value, const std::string& pointer,
                  std::initializer_list<std::string_view> words, const std::function<void(const std::string*)>& set) {
  if (value.is_null()) {
    set(nullptr);
    return {};
  }
  if (value.is_string()) {
    const auto& word = value.get_ref<const std::string&>();
    if (std::find(words.begin(), words.end(), word) != words.end()) {
      set(&word);
      return {};
    }
  }
  return invalid(fmt::format("{} must be one of: {}", name, fmt::join(words, " | ")), pointer);
}

}  // namespace

Status apply_configs(const Json& configs, const std::string& pointer, TopicConfig& chosen) {
  if (!configs.is_object()) return invalid("configs must be an object of names and values", pointer);
  for (const auto& member : configs.items()) {
    const std::string& name = member.key();
    const Json& value = member.value();
    const std::string here = pointer + "/" + name.substr(0, 100);
    auto number = std::find_if(kNumbers.begin(), kNumbers.end(), [&](const auto& known) { return known.name == name; });
    if (number != kNumbers.end()) {
      MILLRACE_TRY(apply_number(*number, value, here, chosen));
    } else if (name == kCleanup) {
      MILLRACE_TRY(apply_word(name, value, here, {"delete", "compact", "compact,delete"}, [&](const std::string* word) {
        word ? chosen.set_cleanup_policy(*word) : chosen.clear_cleanup_policy();
      }));
    } else if (name == kTimestamp) {
      MILLRACE_TRY(apply_word(name, value, here, {"CreateTime", "LogAppendTime"}, [&](const std::string* word) {
        word ? chosen.set_message_timestamp_type(*word) : chosen.clear_message_timestamp_type();
      }));
    } else {
      std::string known = fmt::format("{}, {}", kCleanup, kTimestamp);
      for (const auto& config : kNumbers) known += fmt::format(", {}", config.name);
      return fail(ErrorKind::kInvalidArgument, "UNKNOWN_CONFIG",
                  fmt::format("there is no topic config '{}'; known: {}", name.substr(0, 100), known), here);
    }
  }
  return {};
}

void append_configs(std::string& out, const bus::TopicSettings& settings) {
  out += fmt::format(R"({{"{}":"{}","{}":"{}")", kCleanup,
                     !settings.cleanup_compact ? "delete"
                     : settings.cleanup_delete ? "compact,delete"
                                               : "compact",
                     kTimestamp,
                     settings.timestamp_type == bus::TimestampType::kLogAppendTime ? "LogAppendTime" : "CreateTime");
  for (const auto& config : kNumbers) out += fmt::format(R"(,"{}":"{}")", config.name, settings.*config.value);
  out += '}';
}

}  // namespace millrace::api
