#include "config/check.h"

#include <fmt/format.h>
#include <sys/un.h>

#include "config/key.h"

namespace millrace::config {
namespace {

class Rules {
 public:
  explicit Rules(const Config& config) : config_(config) {}

  template <typename T>
  void at_most(const char* key, const T& value, const char* limit_key, const T& limit, const char* why) {
    if (value > limit)
      conflicts_.push_back({key, limit_key,
                            fmt::format("{} is more than {} ({}): {}", key_at(key).write(config_), limit_key,
                                        key_at(limit_key).write(config_), why)});
  }
  void forbid(bool wrong, const char* key, const char* other, std::string message) {
    if (wrong) conflicts_.push_back({key, other, std::move(message)});
  }
  std::vector<Conflict> take() { return std::move(conflicts_); }

 private:
  const Config& config_;
  std::vector<Conflict> conflicts_;
};

void check_sizes(const Config& c, Rules& rules) {
  rules.at_most("bus.commitMaxSize", c.bus.commit_max_bytes, "bus.commitRingMaxMemorySize",
                c.bus.commit_ring_max_memory_bytes, "such a commit could never enter the ring");
  rules.at_most("bus.commitMaxSize", c.bus.commit_max_bytes, "storage.maxWalSize", c.storage.max_wal_bytes,
                "such a commit would not fit into the write-ahead log");
  rules.at_most("storage.maxWalSize", c.storage.max_wal_bytes, "storage.reserveSize", c.storage.reserve_bytes,
                "flushing it while writes are refused could fill the disk");
  rules.at_most("bus.commitGroupMaxSize", c.bus.commit_group_max_bytes, "bus.commitRingMaxMemorySize",
                c.bus.commit_ring_max_memory_bytes, "a group is taken from the ring");
  rules.at_most("bus.maxMessageSize", c.bus.max_message_bytes, "bus.commitMaxSize", c.bus.commit_max_bytes,
                "such a record batch could never be committed");
  rules.at_most("http.maxBodySize", c.http.max_body_bytes, "bus.commitMaxSize", c.bus.commit_max_bytes,
                "a body of that size would be taken in only to be refused");
  rules.at_most("http.maxBodySize", c.http.max_body_bytes, "http.maxBodyMemory", c.http.max_body_memory_bytes,
                "such a body could never be taken in");
}

void check_counts_and_times(const Config& c, Rules& rules) {
  rules.at_most("bus.defaultPartitions", c.bus.default_partitions, "bus.maxPartitions", c.bus.max_partitions,
                "no topic could be created without a count");
  rules.at_most("worker.backoffMin", c.worker.backoff_min, "worker.backoffMax", c.worker.backoff_max,
                "the first pause is the shortest");
  rules.at_most("http.drainTimeout", c.http.drain_timeout, "node.shutdownTimeout", c.node.shutdown_timeout,
                "the process would end before the drain does");
}

void check_listeners(const Config& c, Rules& rules) {
  for (const Endpoint& endpoint : c.http.listen)
    rules.forbid(
        !endpoint.is_loopback(), "http.listen", "",
        fmt::format(
            "{} is not a loopback address; there is no authentication yet, so only 127.0.0.0/8 and [::1] are allowed",
            format_endpoint(endpoint)));
  auto socket = c.http.unix_socket_path();
  rules.forbid(c.http.listen.empty() && !socket, "http.listen", "http.unixSocket",
               "neither a TCP listener nor a Unix socket is left; nobody could reach the node");
  constexpr size_t kLongestSocketPath = sizeof(sockaddr_un::sun_path) - 1;
  if (socket)
    rules.forbid(socket->string().size() > kLongestSocketPath, "http.unixSocket", "node.dataDirectory",
                 fmt::format("the path {} has {} bytes; a Unix socket's may have {}. Set a shorter one, or none",
                             socket->string(), socket->string().size(), kLongestSocketPath));
}

}  // namespace

std::vector<Conflict> check(const Config& config) {
  Rules rules(config);
  check_sizes(config, rules);
  check_counts_and_times(config, rules);
  check_listeners(config, rules);
  return rules.take();
}

}  // namespace millrace::config
