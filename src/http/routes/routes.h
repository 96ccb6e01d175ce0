#pragma once

#include <functional>
#include <string>

#include "api/backups.h"
#include "api/groups.h"
#include "api/records.h"
#include "api/topics.h"
#include "api/workers.h"
#include "base/heartbeat.h"
#include "http/router.h"

/// The API's routes: what is taken from a request, which use case it goes to, and what /openapi.json says of it.
/// Everything that is passed by reference must outlive the server's loops.
namespace millrace::http {

struct RecordLimits {
  size_t max_fetch_bytes = 4u << 20;
  std::chrono::milliseconds max_wait = std::chrono::seconds(60);
};

void add_topic_routes(Router& router, api::TopicsApi& topics);
void add_record_routes(Router& router, api::RecordsApi& records, bus::CommitLog& log, RecordLimits limits);
void add_group_routes(Router& router, api::GroupsApi& groups, bus::CommitLog& log, RecordLimits limits);
void add_stream_route(Router& router, api::RecordsApi& records, api::TopicsApi& topics, bus::CommitLog& log);

void add_backup_routes(Router& router, api::BackupsApi& backups, std::chrono::milliseconds max_wait);

void add_worker_routes(Router& router, api::WorkersApi& workers);

/// What the node says of itself; each function is called on io threads and must not block.
struct NodeStatus {
  std::function<std::string()> info;      ///< JSON of GET /v1/node
  std::function<Status()> ready;          ///< why not, if not
  std::function<std::string()> metrics;   ///< Prometheus text
  std::chrono::milliseconds stuck_after;  ///< a loop that did not answer for that long is stuck
};
void add_node_routes(Router& router, NodeStatus status, Health& health);

}  // namespace millrace::http
