#pragma once

#include <string>

#include "bus/commit_pipeline.h"
#include "http/stats.h"
#include "store/store.h"

namespace millrace::daemon {

/// What GET /metrics answers, in Prometheus' text format. Collected when asked.
std::string metrics_text(const bus::CommitPipeline& pipeline, const store::Store& store, const http::Stats& http);

}  // namespace millrace::daemon
