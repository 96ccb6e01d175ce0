#pragma once

#include <string_view>

#include "worker/assignment.h"

namespace millrace::worker {

/// Where a drill may break a worker. The product has none; tests and benches pass one to WorkerPool::start.
class FaultPoints {
 public:
  enum class Point { kBeforeStep, kBeforeCommit, kAfterCommit };
  virtual ~FaultPoints() = default;
  /// On the worker's thread. May block (the worker hangs) or throw WorkerKilled.
  virtual void at(Point point, WorkerId worker, std::string_view processor, uint32_t partition) = 0;
};

/// Ends a worker's thread where it stands, with nothing released. Deliberately no std::exception.
struct WorkerKilled {};

}  // namespace millrace::worker
