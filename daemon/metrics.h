#pragma once

#include <string>

#include "api/groups.h"
#include "bus/commit_pipeline.h"
#include "bus/log_keeper.h"
#include "group/coordinator.h"
#include "http/stats.h"
#include "store/store.h"
#include "worker/worker_pool.h"

namespace millrace::daemon {

/// What GET /metrics answers, in Prometheus' text format. Collected when asked.
std::string metrics_text(const bus::CommitPipeline& pipeline, const bus::LogKeeper& keeper, const store::Store& store,
                         const group::Coordinator& coordinator, const api::GroupsApi& groups,
                         const worker::WorkerPool& workers, const http::Stats& http);

}  // namespace millrace::daemon
