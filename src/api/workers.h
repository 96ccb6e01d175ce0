#pragma once

#include <string>

#include "base/result.h"
#include "worker/worker_pool.h"

/// Workers as use cases. Answers are JSON text; nothing here blocks.
namespace millrace::api {

/// Owned by main; any thread.
class WorkersApi {
 public:
  explicit WorkersApi(worker::WorkerPool& pool) : pool_(pool) {}

  /// {"workers":[{"id","state","step","stepAgeMs","partitions":[..]}],"processors":[..]}
  std::string list() const;
  /// The drill: the worker leaves, a new one takes its place. Errors: kNotFound UNKNOWN_WORKER, kUnavailable STOPPING.
  Status stop(uint64_t id);

 private:
  worker::WorkerPool& pool_;
};

}  // namespace millrace::api
