#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

/// What consumers write into subscriptions and assignments: Kafka's ConsumerProtocolSubscription and
/// ConsumerProtocolAssignment, so that members over HTTP and Kafka clients can share a group.
namespace millrace::group {

inline constexpr std::string_view kConsumerProtocolType = "consumer";
inline constexpr std::string_view kRange = "range";
inline constexpr std::string_view kRoundRobin = "roundrobin";

struct Subscription {
  std::vector<std::string> topics;
  Bytes user_data;
};
/// Partitions by topic, ascending.
using TopicPartitions = std::map<std::string, std::vector<uint32_t>>;

/// Version 0. What newer versions add behind is passed over when reading. Errors: kInvalidArgument
/// INVALID_SUBSCRIPTION, INVALID_ASSIGNMENT.
Bytes encode(const Subscription& subscription);
Result<Subscription> parse_subscription(ByteView bytes);
Bytes encode(const TopicPartitions& assignment);
/// No bytes are no partitions.
Result<TopicPartitions> parse_assignment(ByteView bytes);

/// A member as the assignors see it. They sort by `order` (the instance id where there is one), as Kafka's do.
struct Subscriber {
  std::string order;
  std::string member_id;
  std::vector<std::string> topics;
};
/// By member id. Topics without an entry in `partitions` do not exist.
using Assignments = std::map<std::string, TopicPartitions>;
/// Each topic's partitions in stretches; who comes first gets one more when they cannot be shared evenly.
Assignments assign_range(std::vector<Subscriber> members, const std::map<std::string, uint32_t>& partitions);
/// All partitions in turn to all members that want them.
Assignments assign_round_robin(std::vector<Subscriber> members, const std::map<std::string, uint32_t>& partitions);

}  // namespace millrace::group
