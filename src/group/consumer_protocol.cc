#include "group/consumer_protocol.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

namespace millrace::group {
namespace {

void append_string(Bytes& out, ByteView text) {
  append_be(out, static_cast<int16_t>(text.size()));
  out += text;
}

/// A cursor that never reads beyond the end; once it has failed it stays so.
class Reader {
 public:
  explicit Reader(ByteView bytes) : left_(bytes) {}

  template <typename Integer>
  Integer integer() {
    if (left_.size() < sizeof(Integer)) {
      good_ = false;
      left_ = {};
      return 0;
    }
    auto value = load_be<Integer>(left_.data());
    left_.remove_prefix(sizeof(Integer));
    return value;
  }
  Bytes bytes(int64_t size) {
    if (size < 0 || static_cast<uint64_t>(size) > left_.size()) {
      good_ = false;
      return {};
    }
    Bytes taken(left_.substr(0, static_cast<size_t>(size)));
    left_.remove_prefix(static_cast<size_t>(size));
    return taken;
  }
  Bytes string() { return bytes(integer<int16_t>()); }
  /// A count of things that take at least `least` bytes each: a forged one must not make us allocate.
  size_t count(size_t least) {
    auto count = integer<int32_t>();
    if (count < 0 || static_cast<size_t>(count) > left_.size() / least) {
      good_ = false;
      return 0;
    }
    return static_cast<size_t>(count);
  }
  Bytes nullable_bytes() {
    auto size = integer<int32_t>();
    return size == -1 ? Bytes() : bytes(size);
  }
  bool good() const { return good_; }

 private:
  ByteView left_;
  bool good_ = true;
};

void append_user_data(Bytes& out, ByteView data) {
  append_be(out, data.empty() ? int32_t{-1} : static_cast<int32_t>(data.size()));
  out += data;
}

}  // namespace

Bytes encode(const Subscription& subscription) {
  Bytes out;
  append_be(out, int16_t{0});
  append_be(out, static_cast<int32_t>(subscription.topics.size()));
  for (const std::string& topic : subscription.topics) append_string(out, topic);
  append_user_data(out, subscription.user_data);
  return out;
}

Result<Subscription> parse_subscription(ByteView bytes) {
  Reader reader(bytes);
  Subscription subscription;
  const bool known = reader.integer<int16_t>() >= 0;
  for (size_t i = reader.count(2); i > 0 && reader.good(); --i) subscription.topics.push_back(reader.string());
  subscription.user_data = reader.nullable_bytes();
  if (!known || !reader.good())
    return fail(ErrorKind::kInvalidArgument, "INVALID_SUBSCRIPTION",
                fmt::format("a subscription of {} bytes cannot be read", bytes.size()));
  return subscription;
}

Bytes encode(const TopicPartitions& assignment) {
  Bytes out;
  append_be(out, int16_t{0});
  append_be(out, static_cast<int32_t>(assignment.size()));
  for (const auto& [topic, partitions] : assignment) {
    append_string(out, topic);
    append_be(out, static_cast<int32_t>(partitions.size()));
    for (uint32_t partition : partitions) append_be(out, static_cast<int32_t>(partition));
  }
  append_user_data(out, {});
  return out;
}

Result<TopicPartitions> parse_assignment(ByteView bytes) {
  TopicPartitions assignment;
  if (bytes.empty()) return assignment;
  Reader reader(bytes);
  const bool known = reader.integer<int16_t>() >= 0;
  for (size_t i = reader.count(6); i > 0 && reader.good(); --i) {
    auto& partitions = assignment[reader.string()];
    for (size_t j = reader.count(4); j > 0; --j) partitions.push_back(static_cast<uint32_t>(reader.integer<int32_t>()));
    std::sort(partitions.begin(), partitions.end());
  }
  if (!known || !reader.good())
    return fail(ErrorKind::kInvalidArgument, "INVALID_ASSIGNMENT",
                fmt::format("an assignment of {} bytes cannot be read", bytes.size()));
  return assignment;
}

Assignments assign_range(std::vector<Subscriber> members, const std::map<std::string, uint32_t>& partitions) {
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
  Assignments out;
  for (const Subscriber& member : members) out[member.member_id];
  for (const auto& [topic, count] : partitions) {
    std::vector<const Subscriber*> wanting;
    for (const Subscriber& member : members)
      if (std::find(member.topics.begin(), member.topics.end(), topic) != member.topics.end())
        wanting.push_back(&member);
    uint32_t next = 0;
    for (size_t i = 0; i < wanting.size(); ++i) {
      const uint32_t share = count / static_cast<uint32_t>(wanting.size()) + (i < count % wanting.size() ? 1 : 0);
      for (uint32_t j = 0; j < share; ++j) out[wanting[i]->member_id][topic].push_back(next++);
    }
  }
  return out;
}

Assignments assign_round_robin(std::vector<Subscriber> members, const std::map<std::string, uint32_t>& partitions) {
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
  Assignments out;
  std::set<std::pair<std::string, std::string>> wants;
  for (const Subscriber& member : members) {
    out[member.member_id];
    for (const std::string& topic : member.topics) wants.emplace(topic, member.member_id);
  }
  size_t turn = 0;
  for (const auto& [topic, count] : partitions) {
    auto any = wants.lower_bound({topic, ""});
    if (any == wants.end() || any->first != topic) continue;
    for (uint32_t partition = 0; partition < count; ++partition) {
      while (!wants.contains({topic, members[turn % members.size()].member_id})) ++turn;
      out[members[turn++ % members.size()].member_id][topic].push_back(partition);
    }
  }
  return out;
}

}  // namespace millrace::group
