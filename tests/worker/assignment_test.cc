#include "worker/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/support/random_seed.h"

namespace millrace::worker {
namespace {

using Owners = std::vector<std::optional<WorkerId>>;

Owners as_owners(const std::vector<WorkerId>& assigned) {
  return {assigned.begin(), assigned.end()};
}

void expect_balance(const std::vector<WorkerId>& assigned, const std::vector<WorkerId>& workers) {
  std::map<WorkerId, size_t> load;
  for (WorkerId worker : workers) load[worker] = 0;
  for (WorkerId worker : assigned) ++load.at(worker);
  auto [least, most] =
      std::minmax_element(load.begin(), load.end(), [](auto& a, auto& b) { return a.second < b.second; });
  EXPECT_LE(most->second - least->second, 1u);
}

TEST(Assignment, NobodyMovesWithoutNeed) {
  auto assigned = assign(Owners(16), {1, 2, 3, 4});
  expect_balance(assigned, {1, 2, 3, 4});
  EXPECT_EQ(assign(as_owners(assigned), {1, 2, 3, 4}), assigned);
}

TEST(Assignment, AReplacementTakesWhatItsPredecessorHadAndNothingElse) {
  auto before = assign(Owners(10), {1, 2, 3});
  auto after = assign(as_owners(before), {1, 3, 4});
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], before[i] == 2 ? 4u : before[i]);
}

TEST(Assignment, RandomJoinsAndLeavesKeepBalanceAndMoveNoMoreThanTheyMust) {
  const uint64_t seed = tests::random_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    Owners owners(random() % 40);
    std::vector<WorkerId> workers{0};
    WorkerId next = 1;
    for (int change = 0; change < 20; ++change) {
      if (workers.size() > 1 && random() % 2)
        workers.erase(workers.begin() + static_cast<ptrdiff_t>(random() % workers.size()));
      else
        workers.push_back(next++);
      auto assigned = assign(owners, workers);
      expect_balance(assigned, workers);
      // What has to move: tasks of nobody, and what is more than a worker's share.
      std::map<WorkerId, size_t> had;
      for (WorkerId worker : workers) had[worker] = 0;
      size_t must = 0, moved = 0;
      for (const auto& owner : owners) {
        if (owner && had.contains(*owner))
          ++had[*owner];
        else
          ++must;
      }
      std::vector<size_t> loads;
      for (auto& [worker, load] : had) loads.push_back(load);
      std::sort(loads.rbegin(), loads.rend());
      for (size_t i = 0; i < loads.size(); ++i) {
        size_t share = owners.size() / workers.size() + (i < owners.size() % workers.size() ? 1 : 0);
        must += loads[i] > share ? loads[i] - share : 0;
      }
      for (size_t i = 0; i < owners.size(); ++i) moved += owners[i] != assigned[i];
      EXPECT_EQ(moved, must);
      owners = as_owners(assigned);
    }
  }
}

}  // namespace
}  // namespace millrace::worker
