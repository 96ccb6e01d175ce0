// Many members that come, go, die, read and commit at random, held against a model. MILLRACE_STORM_SECONDS=120 runs it
// for so long instead of a fixed number of operations.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "tests/group/group_fixture.h"
#include "tests/support/random_seed.h"

namespace millrace::group {
namespace {

constexpr uint32_t kPartitions = 32;
constexpr size_t kMembers = 50;

class Storm : public testing::TestWithParam<bus::Carrier> {
 protected:
  struct Member {
    enum class Is { kAbsent, kAsking, kMember } is = Is::kAbsent;
    std::optional<Membership> known;
    std::map<uint32_t, uint64_t> tail;  ///< read and not committed
  };
  struct Counts {
    uint64_t operations = 0, joins = 0, leaves = 0, deaths = 0, reads = 0, records = 0, commits = 0, stale = 0,
             stable = 0, restarts = 0;
  };

  static Coordinator::Options options() {
    Coordinator::Options options;
    options.limits.min_session_timeout_ms = 1'000;
    return options;
  }
  Storm() : node_(GetParam(), clock_, options()), random_(tests::random_seed()) {
    node_.create_topic("t", kPartitions);
    for (uint32_t i = 0; i < kPartitions; ++i) at_.push_back(node_.at("t", i));
  }

  size_t below(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }
  std::shared_ptr<Member> pick() { return members_[below(kMembers)]; }

  void join(const std::shared_ptr<Member>& member) {
    if (member->is != Member::Is::kAbsent) return;
    ++counts_.joins;
    ConsumerSpec spec;
    spec.topics = {"t"};
    spec.client_id = "storm";
    spec.session_timeout_ms = 5'000;
    spec.rebalance_timeout_ms = 5'000;
    spec.reset = OffsetReset::kEarliest;
    member->is = Member::Is::kAsking;
    node_.consumers().join("g", spec, [this, member](Result<Membership> joined) { take(member, std::move(joined)); });
  }
  /// On the carrier's thread, while this one waits in settle().
  void take(const std::shared_ptr<Member>& member, Result<Membership> answer) {
    if (member->is != Member::Is::kAsking) return;
    member->tail.clear();
    if (answer) {
      member->is = Member::Is::kMember;
      member->known = *std::move(answer);
    } else {
      member->is = Member::Is::kAbsent;
      keep_stale(*member);
    }
  }
  void keep_stale(Member& member) {
    if (member.known) stale_.push_back(member.known->identity());
    if (stale_.size() > 200) stale_.erase(stale_.begin());
    member.known.reset();
  }

  void poll(const std::shared_ptr<Member>& member) {
    if (member->is != Member::Is::kMember) return;
    const std::string id = member->known->member_id;
    stale_.push_back(member->known->identity());
    member->is = Member::Is::kAsking;
    node_.consumers().settle("g", id, [this, member](Result<Membership> settled) { take(member, std::move(settled)); });
    node_.settle();
    if (member->is != Member::Is::kMember) return;
    ++counts_.reads;
    auto read = node_.groups().read(*member->known, 20, 1 << 20);
    ASSERT_TRUE(read) << to_string(read.error());
    auto json = nlohmann::json::parse(read->json);
    member->tail.clear();
    for (const auto& record : json["records"]) {
      const uint32_t partition = record["partition"];
      const uint64_t offset = std::stoull(record["offset"].get<std::string>());
      auto next = member->tail.try_emplace(partition, model_[partition]).first;
      // Exactly from the committed offset on: nothing before it comes again, and nothing is left out.
      ASSERT_EQ(offset, next->second) << "partition " << partition;
      next->second = offset + 1;
      ++counts_.records;
    }
  }
  void commit(const std::shared_ptr<Member>& member) {
    if (member->is != Member::Is::kMember || member->tail.empty()) return;
    const auto [partition, next] = *member->tail.begin();
    const bool current = is_current(member->known->identity());
    const std::string code = node_.commit("g", member->known->identity(), at_[partition], next);
    if (code.empty()) {
      ASSERT_TRUE(current) << "a commit of generation " << member->known->generation << " was accepted";
      model_[partition] = next;
      ++counts_.commits;
    }
    member->tail.erase(member->tail.begin());
  }
  bool is_current(const MemberIdentity& who) {
    auto standing = node_.coordinator().standing("g", who.member_id);
    return standing && standing->generation == who.generation;
  }
  void commit_stale() {
    if (stale_.empty()) return;
    const MemberIdentity who = stale_[below(stale_.size())];
    if (is_current(who)) return;
    ++counts_.stale;
    const auto partition = static_cast<uint32_t>(below(kPartitions));
    ASSERT_NE(node_.commit("g", who, at_[partition], 0), "") << "an old generation moved an offset";
  }
  void restart() {
    ++counts_.restarts;
    rebalances_ += node_.coordinator().stats().rebalances;
    node_.restart();
    // Whoever waited for an answer gets none, and joins anew.
    for (auto& member : members_)
      if (member->is == Member::Is::kAsking) {
        member->is = Member::Is::kAbsent;
        keep_stale(*member);
        member = std::make_shared<Member>(*member);
      }
  }

  void check() {
    auto info = node_.coordinator().describe("g");
    if (info && info->state == GroupState::kStable) {
      ++counts_.stable;
      std::vector<int> owners(kPartitions);
      for (const MemberInfo& member : info->members) {
        TopicPartitions assignment = *parse_assignment(member.assignment);
        for (uint32_t partition : assignment["t"]) ++owners[partition];
      }
      ASSERT_EQ(owners, std::vector<int>(kPartitions, 1)) << "each partition has one owner";
    }
    const auto partition = static_cast<uint32_t>(below(kPartitions));
    auto committed = node_.committed("g", at_[partition]);
    ASSERT_EQ(committed ? committed->next_offset : 0, model_[partition]) << "partition " << partition;
  }

  void step() {
    ++counts_.operations;
    const size_t dice = below(1'000);
    auto member = pick();
    if (dice < 60) {
      join(member);
    } else if (dice < 75) {
      if (member->is != Member::Is::kMember) return;
      ++counts_.leaves;
      std::ignore = node_.coordinator().leave("g", member->known->identity());
      member->is = Member::Is::kAbsent;
      keep_stale(*member);
    } else if (dice < 85) {
      if (member->is != Member::Is::kMember) return;
      ++counts_.deaths;
      keep_stale(*member);
      member->is = Member::Is::kAbsent;
    } else if (dice < 500) {
      poll(member);
    } else if (dice < 600) {
      // Most of them ask, as living clients do all the time; then a rebalance comes to its end.
      for (auto& one : members_) {
        if (below(50) > 0) poll(one);
        if (below(2) == 0) commit(one);
      }
    } else if (dice < 800) {
      commit(member);
    } else if (dice < 850) {
      commit_stale();
    } else if (dice < 900) {
      node_.produce(at_[below(kPartitions)], 1 + static_cast<int>(below(20)));
    } else if (dice < 999) {
      node_.pass(static_cast<int64_t>(below(1'000)));
    } else {
      restart();
    }
    node_.settle();
    check();
  }

  ManualClock clock_;
  Node node_;
  std::mt19937_64 random_;
  std::vector<bus::TopicPartition> at_;
  std::vector<std::shared_ptr<Member>> members_ = [] {
    std::vector<std::shared_ptr<Member>> all(kMembers);
    for (auto& one : all) one = std::make_shared<Member>();
    return all;
  }();
  std::vector<MemberIdentity> stale_;
  std::array<uint64_t, kPartitions> model_{};
  Counts counts_;
  uint64_t rebalances_ = 0;  ///< before the last restart
};

TEST_P(Storm, OwnersGenerationsAndOffsetsHold) {
  const char* seconds = std::getenv("MILLRACE_STORM_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds ? std::atoi(seconds) : 0);
  const uint64_t operations = GetParam() == bus::Carrier::kMemory ? 4'000 : 600;
  while (!HasFatalFailure() && (seconds ? std::chrono::steady_clock::now() < end : counts_.operations < operations))
    step();
  if (HasFatalFailure()) return;
  EXPECT_GT(counts_.stable, 0u);
  EXPECT_GT(counts_.commits, 0u);
  std::printf(
      "%s: %lu operations, %lu joins, %lu leaves, %lu deaths, %lu restarts, %lu rebalances, %lu times seen stable, "
      "%lu reads, %lu records, %lu commits, %lu stale commits refused\n",
      std::string(name_of(GetParam())).c_str(), counts_.operations, counts_.joins, counts_.leaves, counts_.deaths,
      counts_.restarts, rebalances_ + node_.coordinator().stats().rebalances.load(), counts_.stable, counts_.reads,
      counts_.records, counts_.commits, counts_.stale);
}

INSTANTIATE_TEST_SUITE_P(Carriers, Storm, testing::Values(bus::Carrier::kMemory, bus::Carrier::kLed),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace millrace::group
