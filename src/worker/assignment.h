#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace millrace::worker {

using WorkerId = uint32_t;

/// Divides tasks among workers: every task gets a worker, no two workers differ by more than one task, and as few tasks
/// as that allows leave the worker that they are with. `owners` says by task who has it now: nobody, or a worker that
/// may be gone. Workers must be there and differ from each other. The same input gives the same answer.
std::vector<WorkerId> assign(const std::vector<std::optional<WorkerId>>& owners, const std::vector<WorkerId>& workers);

}  // namespace millrace::worker
