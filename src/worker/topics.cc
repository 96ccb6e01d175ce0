#include "worker/topics.h"

#include <spdlog/fmt/fmt.h>

#include "proto/bus.pb.h"

namespace millrace::worker {

using store::Table;

Result<bus::Topic> find_topic(const bus::View& view, std::string_view name) {
  MILLRACE_TRY(bus::check_topic_name(name));
  auto row = view.get(Table::kTopics, bus::topic_home(name).prefix());
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) return fail(ErrorKind::kNotFound, "UNKNOWN_TOPIC", fmt::format("there is no topic '{}'", name));
  return bus::parse_topic((*row)->value, {});
}

Status ensure_topic(bus::CommitLog& log, const Clock& clock, std::string_view name, uint32_t partitions,
                    std::string_view cleanup_policy, int64_t max_message_bytes) {
  auto view = log.view();
  if (!view) return fail(ErrorKind::kUnavailable, "STOPPING", "the log is closed");
  if (auto found = find_topic(*view, name); found || found.error().code != "UNKNOWN_TOPIC")
    return found ? Status() : tl::unexpected(std::move(found.error()));
  proto::TopicRow row;
  row.set_id(Bytes(Uuid::random().view()));
  row.set_name(std::string(name));
  row.set_created_ms(clock.wall_ms());
  row.mutable_config()->set_cleanup_policy(std::string(cleanup_policy));
  if (max_message_bytes > 0) row.mutable_config()->set_max_message_bytes(max_message_bytes);
  const uint32_t first = log.allocate_partition_ids(partitions);
  for (uint32_t i = 0; i < partitions; ++i) row.add_partitions(first + i);
  const bus::Home home = bus::topic_home(name);
  bus::Commit commit(home);
  commit.conditions.push_back({Table::kTopics, Bytes(home.prefix()), bus::kAbsent});
  commit.state.push_back({Table::kTopics, Bytes(home.prefix()), row.SerializeAsString()});
  auto made = log.submit_and_wait(std::move(commit));
  if (made || made.error().code == "CONDITION_FAILED") return {};
  return tl::unexpected(std::move(made.error()));
}

}  // namespace millrace::worker
