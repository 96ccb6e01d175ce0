#include "worker/assignment.h"

#include <algorithm>
#include <map>

#include "base/result.h"

namespace millrace::worker {

std::vector<WorkerId> assign(const std::vector<std::optional<WorkerId>>& owners, const std::vector<WorkerId>& workers) {
  MILLRACE_ASSERT(!workers.empty(), "an assignment needs a worker");
  std::map<WorkerId, size_t> had;
  for (WorkerId worker : workers) had[worker] = 0;
  for (const auto& owner : owners)
    if (owner)
      if (auto found = had.find(*owner); found != had.end()) ++found->second;

  // Those that have most may keep one more than the others, if the tasks do not divide evenly.
  std::vector<WorkerId> by_load(workers);
  std::stable_sort(by_load.begin(), by_load.end(), [&](WorkerId a, WorkerId b) { return had[a] > had[b]; });
  const size_t share = owners.size() / workers.size(), spare = owners.size() % workers.size();
  std::map<WorkerId, size_t> room;
  for (size_t i = 0; i < by_load.size(); ++i) room[by_load[i]] = share + (i < spare ? 1 : 0);

  std::vector<WorkerId> assigned(owners.size());
  std::vector<size_t> homeless;
  for (size_t task = 0; task < owners.size(); ++task) {
    auto found = owners[task] ? room.find(*owners[task]) : room.end();
    if (found == room.end() || found->second == 0) {
      homeless.push_back(task);
      continue;
    }
    assigned[task] = found->first;
    --found->second;
  }
  for (size_t task : homeless) {
    auto widest = std::max_element(room.begin(), room.end(), [](auto& a, auto& b) { return a.second < b.second; });
    assigned[task] = widest->first;
    --widest->second;
  }
  return assigned;
}

}  // namespace millrace::worker
