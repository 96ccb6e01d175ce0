#include "group/classic_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/group.pb.h"

namespace millrace::group {
namespace {

/// One group, driven by hand; answers are kept by ticket.
class Machine : public testing::Test {
 protected:
  Machine() : group_("g", limits()) {}
  static ClassicGroup::Limits limits() {
    ClassicGroup::Limits limits;
    limits.max_members = 3;
    return limits;
  }
  static JoinRequest request(const std::string& id = "", std::optional<std::string> instance = std::nullopt) {
    JoinRequest request;
    request.member_id = id;
    request.instance_id = std::move(instance);
    request.session_timeout_ms = 10'000;
    request.rebalance_timeout_ms = 20'000;
    request.protocol_type = "consumer";
    request.protocols = {{"range", "topics"}};
    return request;
  }
  uint64_t join(const JoinRequest& request, const std::string& fresh = "") {
    ClassicGroup::Effects effects;
    group_.join(now_, ++ticket_, request, fresh, effects);
    take(effects);
    return ticket_;
  }
  uint64_t sync(const std::string& id, std::vector<Assignment> assignments = {}) {
    ClassicGroup::Effects effects;
    SyncRequest request;
    request.member_id = id;
    request.generation = group_.generation();
    request.assignments = std::move(assignments);
    group_.sync(now_, ++ticket_, request, effects);
    take(effects);
    return ticket_;
  }
  void pass(int64_t ms) {
    now_ += ms;
    ClassicGroup::Effects effects;
    group_.expire(now_, effects);
    take(effects);
  }
  Status leave(const std::string& id) {
    ClassicGroup::Effects effects;
    auto status = group_.leave(now_, {id, std::nullopt, 0}, effects);
    take(effects);
    return status;
  }
  void persisted(Status status = {}) {
    ClassicGroup::Effects effects;
    group_.persisted(now_, group_.revision(), status, effects);
    take(effects);
  }
  void take(ClassicGroup::Effects& effects) {
    for (auto& [ticket, answer] : effects.joins) joins_[ticket] = answer;
    for (auto& [ticket, answer] : effects.syncs) syncs_[ticket] = answer;
    if (!effects.persist) return;
    ++rows_;
    if (at_once_) persisted();
  }
  std::string join_code(uint64_t ticket) {
    if (!joins_.contains(ticket)) return "waits";
    return joins_[ticket].error ? std::string(joins_[ticket].error->code) : "";
  }
  std::string sync_code(uint64_t ticket) {
    if (!syncs_.contains(ticket)) return "waits";
    return syncs_[ticket].error ? std::string(syncs_[ticket].error->code) : "";
  }
  static std::string code(const Status& status) { return status ? "" : std::string(status.error().code); }
  MemberIdentity member(const std::string& id) const { return {id, std::nullopt, group_.generation()}; }
  /// "a" leads; everybody gets its own name as assignment.
  void stable(const std::vector<std::string>& ids) {
    for (const auto& id : ids) join(request(), id);
    pass(200);
    for (int i = 0; i < 5 && group_.state() == GroupState::kPreparingRebalance; ++i) pass(200);
    std::vector<Assignment> all;
    for (const auto& id : ids) all.push_back({id, "of " + id});
    for (const auto& id : ids) sync(id, id == group_.leader() ? all : std::vector<Assignment>());
    ASSERT_EQ(group_.state(), GroupState::kStable);
  }

  int64_t now_ = 1'000;
  uint64_t ticket_ = 0;
  bool at_once_ = true;
  int rows_ = 0;
  ClassicGroup group_;
  std::map<uint64_t, JoinAnswer> joins_;
  std::map<uint64_t, SyncAnswer> syncs_;
};

TEST_F(Machine, TheFirstMemberLeadsAfterTheInitialDelay) {
  auto first = join(request(), "a");
  EXPECT_EQ(join_code(first), "waits");
  EXPECT_EQ(group_.next_deadline(), now_ + 200);
  pass(200);
  EXPECT_EQ(join_code(first), "");
  EXPECT_EQ(joins_[first].leader, "a");
  EXPECT_EQ(joins_[first].generation, 1);
  EXPECT_EQ(joins_[first].members.size(), 1u);
  EXPECT_EQ(group_.state(), GroupState::kCompletingRebalance);
}

TEST_F(Machine, TheInitialDelayGrowsWhileMembersCome) {
  auto first = join(request(), "a");
  pass(150);
  auto second = join(request(), "b");
  pass(50);
  EXPECT_EQ(join_code(first), "waits");
  pass(200);
  EXPECT_EQ(join_code(first), "");
  EXPECT_EQ(join_code(second), "");
  EXPECT_TRUE(joins_[second].members.empty()) << "only the leader sees the members";
}

TEST_F(Machine, ADynamicMemberGetsItsIdFirst) {
  auto asking = request();
  asking.member_id_required = true;
  auto first = join(asking, "a");
  EXPECT_EQ(join_code(first), "MEMBER_ID_REQUIRED");
  EXPECT_EQ(joins_[first].member_id, "a");
  EXPECT_EQ(group_.size(), 0u);
  asking.member_id = "a";
  auto second = join(asking, "unused");
  pass(200);
  EXPECT_EQ(join_code(second), "");
  EXPECT_EQ(joins_[second].member_id, "a");
}

TEST_F(Machine, AnIdThatIsNotUsedIsForgotten) {
  auto asking = request();
  asking.member_id_required = true;
  join(asking, "a");
  pass(10'000);
  EXPECT_EQ(group_.next_deadline(), std::nullopt);
  EXPECT_EQ(join_code(join(request("a"))), "UNKNOWN_MEMBER_ID");
}

TEST_F(Machine, AnUnknownMemberIdIsRefused) {
  EXPECT_EQ(join_code(join(request("nobody"))), "UNKNOWN_MEMBER_ID");
  stable({"a"});
  EXPECT_EQ(code(group_.heartbeat(now_, member("nobody"))), "UNKNOWN_MEMBER_ID");
  EXPECT_EQ(sync_code(sync("nobody")), "UNKNOWN_MEMBER_ID");
  EXPECT_EQ(code(leave("nobody")), "UNKNOWN_MEMBER_ID");
}

TEST_F(Machine, AssignmentsAreToldWhenTheyAreDurable) {
  at_once_ = false;
  join(request(), "a");
  pass(200);
  auto synced = sync("a", {{"a", "all"}});
  EXPECT_EQ(sync_code(synced), "waits");
  EXPECT_EQ(group_.state(), GroupState::kCompletingRebalance);
  persisted();
  EXPECT_EQ(sync_code(synced), "");
  EXPECT_EQ(syncs_[synced].assignment, "all");
  EXPECT_EQ(group_.state(), GroupState::kStable);
}

TEST_F(Machine, ARefusedRowBeginsTheRebalanceAnew) {
  at_once_ = false;
  join(request(), "a");
  pass(200);
  auto synced = sync("a", {{"a", "all"}});
  persisted(fail(ErrorKind::kExhausted, "COMMIT_QUEUE_FULL", "full"));
  EXPECT_EQ(sync_code(synced), "COMMIT_QUEUE_FULL");
  EXPECT_EQ(group_.state(), GroupState::kPreparingRebalance);
}

TEST_F(Machine, AHeartbeatDuringARebalanceSaysSo) {
  stable({"a", "b"});
  EXPECT_EQ(code(group_.heartbeat(now_, member("b"))), "");
  join(request(), "c");
  EXPECT_EQ(group_.state(), GroupState::kPreparingRebalance);
  EXPECT_EQ(code(group_.heartbeat(now_, member("b"))), "REBALANCE_IN_PROGRESS");
}

TEST_F(Machine, AnOldGenerationIsRefused) {
  stable({"a"});
  EXPECT_EQ(code(group_.heartbeat(now_, {"a", std::nullopt, 0})), "ILLEGAL_GENERATION");
  EXPECT_EQ(code(group_.check_commit(now_, {"a", std::nullopt, 2})), "ILLEGAL_GENERATION");
}

TEST_F(Machine, CommitsAreTakenInPreparingAndNotInCompletingRebalance) {
  stable({"a"});
  EXPECT_EQ(code(group_.check_commit(now_, member("a"))), "");
  join(request(), "b");
  EXPECT_EQ(group_.state(), GroupState::kPreparingRebalance);
  EXPECT_EQ(code(group_.check_commit(now_, member("a"))), "");
  join(request("a"));
  EXPECT_EQ(group_.state(), GroupState::kCompletingRebalance);
  EXPECT_EQ(code(group_.check_commit(now_, {"a", std::nullopt, 1})), "ILLEGAL_GENERATION");
  EXPECT_EQ(code(group_.check_commit(now_, member("a"))), "REBALANCE_IN_PROGRESS");
}

TEST_F(Machine, ACommitWithoutAMemberIsTakenOnlyWhenEmpty) {
  EXPECT_EQ(code(group_.check_commit(now_, {})), "");
  stable({"a"});
  EXPECT_EQ(code(group_.check_commit(now_, {})), "GROUP_NOT_EMPTY");
}

TEST_F(Machine, AMemberThatIsSilentExpires) {
  stable({"a", "b"});
  pass(9'999);
  group_.heartbeat(now_, member("a"));
  pass(1);
  EXPECT_FALSE(group_.has_member("b"));
  EXPECT_EQ(group_.state(), GroupState::kPreparingRebalance);
  auto again = join(request("a"));
  EXPECT_EQ(join_code(again), "");
  EXPECT_EQ(joins_[again].members.size(), 1u);
}

/// Their sessions decide, not how long they may take to join again.
TEST_F(Machine, StaticMembersThatAreAbsentAreWaitedForWithoutHaste) {
  auto brief = request("", "i");
  brief.rebalance_timeout_ms = 0;
  join(request(), "a");
  join(brief, "b");
  pass(200);
  pass(200);
  sync("a", {{"a", "1"}, {"b", "2"}});
  ASSERT_EQ(group_.state(), GroupState::kStable);
  ASSERT_TRUE(leave("a"));
  ASSERT_EQ(group_.state(), GroupState::kPreparingRebalance);
  int turns = 0;
  while (group_.state() != GroupState::kEmpty && turns < 100) {
    ++turns;
    pass(std::max<int64_t>(0, *group_.next_deadline() - now_));
  }
  EXPECT_LE(turns, 12) << "ten seconds of its session";
}

TEST_F(Machine, AReplacedStaticMemberIsFencedAndNotUnknown) {
  join(request("", "i"), "a");
  pass(200);
  sync("a", {{"a", "1"}});
  join(request("", "i"), "b");
  EXPECT_EQ(code(group_.heartbeat(now_, member("a"))), "FENCED_INSTANCE_ID");
  EXPECT_EQ(code(leave("a")), "FENCED_INSTANCE_ID");
  EXPECT_EQ(code(group_.heartbeat(now_, member("c"))), "UNKNOWN_MEMBER_ID");
  EXPECT_EQ(code(group_.heartbeat(now_, member("b"))), "");
}

TEST(GroupSize, AMemberThatJoinsAgainIsCountedOnce) {
  ClassicGroup::Limits limits;
  limits.max_bytes = 100;
  limits.initial_rebalance_delay_ms = 0;
  ClassicGroup group("g", limits);
  ClassicGroup::Effects effects;
  JoinRequest request;
  request.session_timeout_ms = request.rebalance_timeout_ms = 10'000;
  request.protocol_type = "consumer";
  request.protocols = {{"range", Bytes(70, 's')}};
  group.join(0, 1, request, "a", effects);
  request.member_id = "a";
  group.join(0, 2, request, "", effects);
  for (const auto& [ticket, answer] : effects.joins) EXPECT_FALSE(answer.error) << ticket;
  request.member_id = "";
  effects = {};
  group.join(0, 3, request, "b", effects);
  ASSERT_EQ(effects.joins.size(), 1u);
  EXPECT_EQ(effects.joins[0].second.error->code, "GROUP_TOO_LARGE");
}

TEST_F(Machine, AHeldMemberDoesNotExpire) {
  stable({"a"});
  group_.hold("a");
  pass(1'000'000);
  EXPECT_TRUE(group_.has_member("a"));
  group_.release(now_, "a");
  pass(9'999);
  EXPECT_TRUE(group_.has_member("a"));
  pass(1);
  EXPECT_FALSE(group_.has_member("a"));
  EXPECT_EQ(group_.state(), GroupState::kEmpty);
}

TEST_F(Machine, WhoDoesNotJoinARebalanceIsRemoved) {
  stable({"a", "b"});
  auto joined = join(request("a"));
  for (int i = 0; i < 4; ++i) {
    pass(4'900);
    group_.heartbeat(now_, member("b"));
  }
  EXPECT_EQ(join_code(joined), "waits");
  pass(1'000);
  EXPECT_EQ(join_code(joined), "");
  EXPECT_FALSE(group_.has_member("b"));
}

TEST_F(Machine, WhoDoesNotSyncIsRemoved) {
  stable({"a", "b"});
  join(request("a"));
  join(request("b"));
  sync("b");
  for (int i = 0; i < 5; ++i) {
    group_.heartbeat(now_, member("a"));
    pass(4'000);
  }
  EXPECT_FALSE(group_.has_member("a"));
  EXPECT_EQ(group_.leader(), "b");
  EXPECT_EQ(group_.state(), GroupState::kPreparingRebalance);
}

TEST_F(Machine, TheLastOneToLeaveLeavesAnEmptyGroup) {
  stable({"a"});
  const int rows = rows_;
  EXPECT_EQ(code(leave("a")), "");
  EXPECT_EQ(group_.state(), GroupState::kEmpty);
  EXPECT_EQ(group_.generation(), 2);
  EXPECT_EQ(rows_, rows + 1);
}

TEST_F(Machine, AFollowerThatRepeatsItsJoinChangesNothing) {
  stable({"a", "b"});
  auto repeated = join(request("b"));
  EXPECT_EQ(join_code(repeated), "");
  EXPECT_EQ(joins_[repeated].generation, 1);
  EXPECT_EQ(group_.state(), GroupState::kStable);
  join(request("a"));
  EXPECT_EQ(group_.state(), GroupState::kPreparingRebalance) << "a leader that joins asks for an assignment";
}

TEST_F(Machine, AChangedSubscriptionBeginsARebalance) {
  stable({"a", "b"});
  auto changed = request("b");
  changed.protocols = {{"range", "others"}};
  join(changed);
  EXPECT_EQ(group_.state(), GroupState::kPreparingRebalance);
}

TEST_F(Machine, TheProtocolIsTheOneMostVoteForAmongThoseAllSupport) {
  auto one = request();
  one.protocols = {{"sticky", ""}, {"range", ""}, {"roundrobin", ""}};
  auto two = request();
  two.protocols = {{"roundrobin", ""}, {"range", ""}};
  join(one, "a");
  join(two, "b");
  auto third = join(two, "c");
  pass(200);
  pass(200);
  EXPECT_EQ(joins_[third].protocol, "roundrobin");
}

TEST_F(Machine, ANothingInCommonIsRefused) {
  stable({"a"});
  auto other = request();
  other.protocols = {{"sticky", ""}};
  EXPECT_EQ(join_code(join(other, "b")), "INCONSISTENT_GROUP_PROTOCOL");
  other = request();
  other.protocol_type = "connect";
  EXPECT_EQ(join_code(join(other, "b")), "INCONSISTENT_GROUP_PROTOCOL");
}

TEST_F(Machine, AGroupHasAtMostItsBoundOfMembers) {
  stable({"a", "b", "c"});
  EXPECT_EQ(join_code(join(request(), "d")), "GROUP_MAX_SIZE_REACHED");
}

TEST_F(Machine, SessionTimeOutsHaveBounds) {
  auto hasty = request();
  hasty.session_timeout_ms = 5'999;
  EXPECT_EQ(join_code(join(hasty, "a")), "INVALID_SESSION_TIMEOUT");
  hasty.session_timeout_ms = 30 * 60'000 + 1;
  EXPECT_EQ(join_code(join(hasty, "a")), "INVALID_SESSION_TIMEOUT");
}

class StaticMember : public Machine {
 protected:
  void SetUp() override {
    join(request("", "i"), "old");
    join(request(), "b");
    pass(200);
    pass(200);
    for (const char* id : {"old", "b"}) sync(id, {{"old", "of i"}, {"b", "of b"}});
    ASSERT_EQ(group_.state(), GroupState::kStable);
  }
};

TEST_F(StaticMember, IsReplacedWithoutARebalanceAndOnlyWhenDurable) {
  at_once_ = false;
  auto again = join(request("", "i"), "new");
  EXPECT_EQ(join_code(again), "waits");
  EXPECT_EQ(group_.state(), GroupState::kStable);
  persisted();
  EXPECT_EQ(join_code(again), "");
  EXPECT_EQ(joins_[again].generation, 1);
  EXPECT_EQ(code(group_.heartbeat(now_, {"old", "i", 1})), "FENCED_INSTANCE_ID");
  EXPECT_EQ(code(group_.check_commit(now_, {"old", "i", 1})), "FENCED_INSTANCE_ID");
}

TEST_F(StaticMember, IsReplacedWithARebalanceWhenItsSubscriptionChanged) {
  auto changed = request("", "i");
  changed.protocols = {{"range", "others"}};
  EXPECT_EQ(join_code(join(changed, "new")), "waits");
  EXPECT_EQ(group_.state(), GroupState::kPreparingRebalance);
}

TEST_F(StaticMember, StaysThroughARebalanceItMissesUntilItsSessionEnds) {
  join(request(), "c");
  join(request("b"));
  pass(9'000);
  EXPECT_TRUE(group_.has_member("old"));
  pass(1'000);
  EXPECT_FALSE(group_.has_member("old"));
}

TEST_F(StaticMember, LeadsOnWithoutAssigningAnewWhenItCanBeTold) {
  auto modern = request("", "i");
  modern.can_skip_assignment = true;
  const std::string leader = group_.leader();
  auto again = join(modern, "new");
  if (leader == "old") {
    EXPECT_TRUE(joins_[again].skip_assignment);
    EXPECT_EQ(joins_[again].leader, "new");
  }
  auto older = join(request("", "i"), "newer");
  EXPECT_NE(joins_[older].leader, "newer");
}

TEST(BusFaults, StaticMemberGetsAnEmptyAssignment) {
  ClassicGroup group("g", {});
  ClassicGroup::Effects effects;
  JoinRequest request;
  request.instance_id = "i";
  request.protocol_type = "consumer";
  request.protocols = {{"range", "t"}};
  group.join(0, 1, request, "first", effects);
  group.expire(200, effects);
  SyncRequest sync;
  sync.member_id = "first";
  sync.generation = 1;
  sync.assignments = {{"first", "everything"}};
  group.sync(200, 2, sync, effects);
  group.persisted(200, group.revision(), {}, effects);
  ASSERT_EQ(group.state(), GroupState::kStable);

  effects = {};
  group.join(300, 3, request, "second", effects);
  group.persisted(300, group.revision(), {}, effects);
  ASSERT_EQ(effects.joins.size(), 1u);
  sync.member_id = "second";
  sync.assignments.clear();
  group.sync(300, 4, sync, effects);
  ASSERT_EQ(effects.syncs.size(), 1u);
  EXPECT_EQ(effects.syncs[0].second.assignment, "everything");
}

TEST_F(Machine, ARowBringsTheGroupBack) {
  stable({"a", "b"});
  proto::GroupRow row;
  group_.fill(row);
  ClassicGroup again = ClassicGroup::from(500, row, limits());
  EXPECT_EQ(again.state(), GroupState::kStable);
  EXPECT_EQ(again.generation(), 1);
  EXPECT_EQ(again.leader(), group_.leader());
  EXPECT_EQ(again.member("b")->assignment, "of b");
  EXPECT_EQ(again.next_deadline(), 10'500) << "sessions begin anew";
}

}  // namespace
}  // namespace millrace::group
