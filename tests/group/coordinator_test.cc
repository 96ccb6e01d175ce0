#include "group/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/group/group_fixture.h"

namespace millrace::group {
namespace {

Coordinator::Options options() {
  Coordinator::Options options;
  options.limits.min_session_timeout_ms = 1'000;
  options.offsets_retention_ms = 3'600'000;
  return options;
}

class Groups : public testing::TestWithParam<bus::Carrier> {
 protected:
  Groups() : node_(GetParam(), clock_, options()) { node_.create_topic("t", 4); }

  /// Joins, waits for the initial delay, and answers the member.
  Result<Membership> join(ConsumerSpec spec) {
    Result<Membership> joined = fail(ErrorKind::kInternal, "NO_ANSWER", "");
    node_.consumers().join("g", spec, [&](Result<Membership> member) { joined = std::move(member); });
    node_.settle();
    for (int i = 0; i < 3 && !joined && joined.error().code == "NO_ANSWER"; ++i) node_.pass(200);
    return joined;
  }
  static ConsumerSpec spec(std::optional<std::string> instance = std::nullopt) {
    ConsumerSpec spec;
    spec.topics = {"t"};
    spec.client_id = "c";
    spec.instance_id = std::move(instance);
    spec.reset = OffsetReset::kEarliest;
    return spec;
  }
  Result<Membership> settle(const std::string& member) {
    Result<Membership> settled = fail(ErrorKind::kInternal, "NO_ANSWER", "");
    node_.consumers().settle("g", member, [&](Result<Membership> one) { settled = std::move(one); });
    node_.settle();
    return settled;
  }
  static std::string code(const auto& result) { return result ? "" : std::string(result.error().code); }

  ManualClock clock_;
  Node node_;
};

TEST_P(Groups, AMemberGetsAllPartitionsAndCommits) {
  auto member = join(spec());
  ASSERT_TRUE(member) << to_string(member.error());
  EXPECT_EQ(member->generation, 1);
  EXPECT_EQ(member->assignment, (TopicPartitions{{"t", {0, 1, 2, 3}}}));
  EXPECT_EQ(node_.commit("g", member->identity(), node_.at("t", 1), 7), "");
  EXPECT_EQ(node_.committed("g", node_.at("t", 1))->next_offset, 7u);
  EXPECT_EQ(node_.committed("g", node_.at("t", 0)), std::nullopt);
}

TEST_P(Groups, TwoMembersShareAndOneTakesOver) {
  auto first = join(spec());
  Result<Membership> second = fail(ErrorKind::kInternal, "NO_ANSWER", "");
  node_.consumers().join("g", spec(), [&](Result<Membership> member) { second = std::move(member); });
  node_.settle();
  EXPECT_EQ(code(second), "NO_ANSWER") << "the first one has not joined the rebalance";
  first = settle(first->member_id);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->generation, 2);
  EXPECT_EQ(first->assignment["t"].size() + second->assignment["t"].size(), 4u);

  ASSERT_TRUE(node_.coordinator().leave("g", second->identity()));
  first = settle(first->member_id);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->assignment["t"].size(), 4u);
}

TEST_P(Groups, AHoldIsWokenByARebalance) {
  auto first = join(spec());
  int woken = 0;
  auto hold = node_.coordinator().hold("g", first->member_id, 1, [&] { ++woken; });
  node_.pass(1'000'000);
  EXPECT_EQ(woken, 0);
  EXPECT_EQ(settle(first->member_id)->generation, 1) << "it is held, and does not expire";
  node_.consumers().join("g", spec(), [](const Result<Membership>&) {});
  EXPECT_EQ(woken, 1);
  auto late = node_.coordinator().hold("g", first->member_id, 1, [&] { ++woken; });
  EXPECT_EQ(woken, 2) << "the generation is over already";
}

TEST_P(Groups, ACommitOfAnOldGenerationIsFenced) {
  auto member = join(spec());
  const MemberIdentity old = member->identity();
  EXPECT_EQ(node_.commit("g", old, node_.at("t", 0), 1), "");
  node_.coordinator().rebalance("g");
  member = settle(member->member_id);
  ASSERT_EQ(member->generation, 2);
  EXPECT_EQ(node_.commit("g", old, node_.at("t", 0), 2), "ILLEGAL_GENERATION");
  EXPECT_EQ(node_.committed("g", node_.at("t", 0))->next_offset, 1u);
  // The log itself refuses what passed the check too early.
  const bus::Home home = *bus::Home::make(bus::HomeKind::kGroup, "g");
  bus::Commit late(home);
  late.fences.push_back({home.key("generation"), 1});
  late.offsets.push_back({"g", node_.at("t", 0), 3});
  auto refused = node_.log().submit_and_wait(std::move(late));
  EXPECT_EQ(code(refused), "FENCED");
}

TEST_P(Groups, OffsetsWithoutMembersMakeAGroup) {
  EXPECT_EQ(node_.commit("simple", {}, node_.at("t", 0), 5), "");
  node_.restart();
  EXPECT_EQ(node_.coordinator().describe("simple")->state, GroupState::kEmpty);
  EXPECT_EQ(node_.committed("simple", node_.at("t", 0))->next_offset, 5u);
  EXPECT_EQ(node_.commit("other", {"nobody", std::nullopt, 1}, node_.at("t", 0), 5), "UNKNOWN_MEMBER_ID");
  EXPECT_EQ(code(node_.coordinator().describe("other")), "UNKNOWN_GROUP");
}

TEST_P(Groups, AreThereAfterARestartWithFreshSessions) {
  auto member = join(spec());
  ASSERT_TRUE(member);
  node_.restart();
  auto again = settle(member->member_id);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->generation, 1);
  EXPECT_EQ(again->assignment, member->assignment);
  EXPECT_EQ(node_.commit("g", member->identity(), node_.at("t", 0), 3), "");
  node_.pass(30'000);
  EXPECT_EQ(code(settle(member->member_id)), "UNKNOWN_MEMBER_ID");
  EXPECT_EQ(node_.coordinator().describe("g")->state, GroupState::kEmpty);
}

TEST_P(Groups, AreDeletedOnlyWhenEmpty) {
  auto member = join(spec());
  EXPECT_EQ(node_.remove("g"), "GROUP_NOT_EMPTY");
  EXPECT_EQ(node_.remove("none"), "UNKNOWN_GROUP");
  ASSERT_TRUE(node_.coordinator().leave("g", member->identity()));
  node_.settle();
  EXPECT_EQ(node_.remove("g"), "");
  EXPECT_EQ(code(node_.coordinator().describe("g")), "UNKNOWN_GROUP");
}

TEST_P(Groups, LoadsManyAndFindsEach) {
  for (int i = 0; i < 50; ++i) node_.commit("g" + std::to_string(i), {}, node_.at("t", i % 4), 1);
  node_.restart();
  EXPECT_EQ(node_.coordinator().groups(), 50u);
}

TEST_P(Groups, AreForgottenWhenEmptyForLongerThanTheirOffsetsAreKept) {
  node_.commit("g", {}, node_.at("t", 0), 1);
  node_.pass(3'000'000);
  node_.commit("g", {}, node_.at("t", 0), 2);
  node_.pass(3'000'000);
  EXPECT_EQ(node_.coordinator().groups(), 1u) << "a commit counts";
  node_.pass(700'000);
  node_.pass(70'000);
  EXPECT_EQ(node_.coordinator().groups(), 0u);
  EXPECT_EQ(node_.committed("g", node_.at("t", 0)), std::nullopt);
}

/// Runs something between the look at a view and what is made of it.
class LogWithAGap final : public bus::CommitLog {
 public:
  explicit LogWithAGap(const Clock& clock) : log_(clock) {}
  void submit(bus::Commit commit) override {
    const bool writes = std::any_of(commit.state.begin(), commit.state.end(),
                                    [](const bus::Change& change) { return change.value.has_value(); });
    if (full && writes) return commit.done(fail(ErrorKind::kExhausted, "DISK_FULL", "injected"));
    log_.submit(std::move(commit));
  }
  bus::CommitResult submit_and_wait(bus::Commit commit) override { return log_.submit_and_wait(std::move(commit)); }
  std::shared_ptr<const bus::View> view() const override {
    auto view = log_.view();
    if (auto fn = std::exchange(in_the_gap, nullptr)) fn();
    return view;
  }
  Result<std::unique_ptr<bus::Watch>> watch(std::vector<bus::WatchedOffset> offsets,
                                            std::function<void()> wake) override {
    return log_.watch(std::move(offsets), std::move(wake));
  }
  uint32_t allocate_partition_ids(uint32_t count) override { return log_.allocate_partition_ids(count); }

  mutable std::function<void()> in_the_gap;
  bool full = false;  ///< commits that write rows are refused

 private:
  bus::MemoryCommitLog log_;
};

TEST(GroupExpiry, ACommitJustBeforeItKeepsTheGroup) {
  ManualClock clock{1'000'000};
  LogWithAGap log(clock);
  auto coordinator = *Coordinator::start(log, clock, options());
  auto commit = [&](uint64_t next_offset) {
    bus::ConsumedOffset offset;
    offset.from = {Uuid::random(), 0};
    offset.next_offset = next_offset;
    std::string code = "no answer";
    coordinator->commit("g", {}, {offset}, [&](const Status& status) { code = status ? "" : status.error().code; });
    EXPECT_EQ(code, "");
  };
  commit(1);
  clock.advance(std::chrono::minutes(61));
  log.in_the_gap = [&] { commit(2); };
  coordinator->run_due();
  EXPECT_EQ(coordinator->groups(), 1u);
  auto offsets = *coordinator->offsets(*log.view(), "g");
  ASSERT_FALSE(offsets.empty());
  EXPECT_TRUE(std::any_of(offsets.begin(), offsets.end(), [](const auto& one) { return one.next_offset == 2; }));
  clock.advance(std::chrono::minutes(62));
  coordinator->run_due();
  EXPECT_EQ(coordinator->groups(), 0u);
}

TEST_P(Groups, AMemberWhoseCallerIsGoneLeaves) {
  const std::string body = R"({"topics":["t"],"autoOffsetReset":"earliest"})";
  node_.groups().join("g", body, "here", [](const Result<std::string>&) { return false; });
  node_.pass(200);
  node_.settle();
  EXPECT_EQ(node_.coordinator().members(), 0u);
  node_.groups().join("g", R"({"topics":["t"],"instanceId":"i"})", "here",
                      [](const Result<std::string>&) { return false; });
  node_.pass(200);
  node_.settle();
  EXPECT_EQ(node_.coordinator().members(), 1u) << "a static one is found again by its instance";
}

TEST_P(Groups, OffsetsOfDeletedTopicsGoWhileTheGroupIsInUse) {
  node_.create_topic("gone", 2);
  const bus::TopicPartition gone = node_.at("gone", 1);
  ASSERT_EQ(node_.commit("g", {}, gone, 0), "");
  auto member = join(spec());
  ASSERT_TRUE(member);
  ASSERT_EQ(node_.commit("g", member->identity(), node_.at("t", 0), 0), "");
  node_.delete_topic("gone");
  for (int i = 0; i < 3; ++i) {
    node_.pass(61'000);
    member = join(spec());
    ASSERT_TRUE(member);
  }
  EXPECT_FALSE(node_.committed("g", gone));
  EXPECT_TRUE(node_.committed("g", node_.at("t", 0)));
}

TEST_P(Groups, OneOfManyOffsetsIsDeletedInSeveralCommits) {
  node_.create_topic("wide", 10'000);
  std::vector<bus::ConsumedOffset> offsets(10'000);
  const Uuid wide = node_.at("wide", 0).topic;
  for (uint32_t i = 0; i < offsets.size(); ++i) offsets[i].from = {wide, i};
  std::string code = "no answer";
  node_.coordinator().commit("g", {}, std::move(offsets),
                             [&](const Status& status) { code = status ? "" : status.error().code; });
  node_.settle();
  ASSERT_EQ(code, "");
  EXPECT_EQ(node_.remove("g"), "");
  EXPECT_TRUE(node_.log().view()->list(store::Table::kGroups, "", "", 10)->empty());
  node_.restart();
  EXPECT_EQ(node_.coordinator().groups(), 0u);
}

/// What could not be written for want of room is tried again, but not behind the deletion.
TEST(GroupDeletion, OnAFullDiskIsForGood) {
  ManualClock clock{1'000'000};
  LogWithAGap log(clock);
  auto coordinator = *Coordinator::start(log, clock, options());
  const bus::TopicPartition at{Uuid::random(), 0};
  bus::ConsumedOffset offset;
  offset.from = at;
  coordinator->commit("g", {}, {offset}, [](const Status& status) { ASSERT_TRUE(status); });
  log.full = true;
  JoinRequest request;
  request.client_id = "c";
  request.protocol_type = "consumer";
  request.protocols = {{"range", ""}};
  request.session_timeout_ms = request.rebalance_timeout_ms = 10'000;
  coordinator->join("g", request, [](const JoinAnswer&) {});
  for (int i = 0; i < 10; ++i) {
    clock.advance(std::chrono::seconds(5));
    coordinator->run_due();
  }
  ASSERT_EQ(coordinator->describe("g")->state, GroupState::kEmpty);
  std::string removed = "no answer";
  coordinator->remove("g", [&](const Status& status) { removed = status ? "" : status.error().code; });
  EXPECT_EQ(removed, "");
  log.full = false;
  for (int i = 0; i < 10; ++i) {
    clock.advance(std::chrono::seconds(5));
    coordinator->run_due();
  }
  EXPECT_EQ(coordinator->groups(), 0u);
  EXPECT_TRUE(log.view()->list(store::Table::kGroups, "", "", 10)->empty());
}

TEST_P(Groups, ATopicThatComesLaterIsAssigned) {
  auto wide = spec();
  wide.topics = {"later", "t"};
  auto member = join(wide);
  EXPECT_EQ(member->assignment.size(), 1u);
  node_.create_topic("later", 2);
  member = settle(member->member_id);
  ASSERT_TRUE(member);
  EXPECT_EQ(member->assignment["later"].size(), 2u);
}

TEST_P(Groups, ATopicMadeAgainInheritsNoOffsets) {
  node_.commit("g", {}, node_.at("t", 0), 9);
  const auto old = node_.at("t", 0);
  node_.delete_topic("t");
  node_.create_topic("t", 4);
  EXPECT_EQ(node_.committed("g", node_.at("t", 0)), std::nullopt);
  node_.pass(400'000);
  node_.pass(70'000);
  EXPECT_EQ(node_.committed("g", old), std::nullopt) << "the offset of a deleted topic is dropped";
}

TEST_P(Groups, ReadFromTheCommittedPositionsOnly) {
  for (uint32_t i = 0; i < 4; ++i) node_.produce(node_.at("t", i), 3);
  auto member = join(spec());
  for (int i = 0; i < 2; ++i) {
    auto read = node_.groups().read(*member, 100, 1 << 20);
    ASSERT_TRUE(read);
    EXPECT_EQ(nlohmann::json::parse(read->json)["records"].size(), 12u) << "a lost answer loses nothing";
  }
  node_.commit("g", member->identity(), node_.at("t", 2), 3);
  auto rest = nlohmann::json::parse(node_.groups().read(*member, 100, 1 << 20)->json);
  EXPECT_EQ(rest["records"].size(), 9u);
  EXPECT_EQ(rest["next"].size(), 3u);
}

/// Their positions are read all at once.
TEST_P(Groups, ReadFromTheCommittedPositionsOfManyPartitions) {
  node_.create_topic("wide", 100);
  auto wide = spec();
  wide.topics = {"t", "wide"};
  ASSERT_EQ(node_.commit("g", {}, node_.at("wide", 77), 2), "");
  for (uint32_t i : {0u, 50u, 77u, 99u}) node_.produce(node_.at("wide", i), 3);
  node_.produce(node_.at("t", 1), 3);
  auto member = join(wide);
  ASSERT_TRUE(member);
  ASSERT_EQ(node_.commit("g", member->identity(), node_.at("t", 1), 1), "");
  const auto read = nlohmann::json::parse(node_.groups().read(*member, 100, 1 << 20)->json);
  std::map<std::string, std::vector<std::string>> found;
  for (const auto& record : read["records"])
    found[record["topic"].get<std::string>() + record["partition"].dump()].push_back(record["offset"]);
  const std::vector<std::string> all = {"0", "1", "2"};
  EXPECT_EQ(found["wide0"], all);
  EXPECT_EQ(found["wide50"], all);
  EXPECT_EQ(found["wide77"], std::vector<std::string>{"2"});
  EXPECT_EQ(found["wide99"], all);
  EXPECT_EQ(found["t1"], (std::vector<std::string>{"1", "2"}));
}

TEST_P(Groups, WithoutAPositionAMemberThatResetsToNoneIsToldSo) {
  auto strict = spec();
  strict.reset = OffsetReset::kNone;
  auto member = join(strict);
  EXPECT_EQ(code(node_.groups().read(*member, 100, 1 << 20)), "NO_COMMITTED_OFFSET");
  for (uint32_t i = 0; i < 4; ++i) node_.commit("g", member->identity(), node_.at("t", i), 99);
  EXPECT_EQ(code(node_.groups().read(*member, 100, 1 << 20)), "OFFSET_OUT_OF_RANGE");
}

TEST_P(Groups, LatestIsTheEndOfTheLogAtTheTimeOfJoining) {
  auto late = spec();
  node_.produce(node_.at("t", 0), 2);
  std::string joined;
  node_.groups().join("g", R"({"topics":["t"],"autoOffsetReset":"latest"})", "here",
                      [&](const Result<std::string>& json) {
                        joined = json ? *json : to_string(json.error());
                        return true;
                      });
  node_.pass(200);
  const std::string id = nlohmann::json::parse(joined)["memberId"];
  node_.produce(node_.at("t", 0), 1);
  auto read = nlohmann::json::parse(node_.groups().read(*node_.consumers().look("g", id), 100, 1 << 20)->json);
  ASSERT_EQ(read["records"].size(), 1u);
  EXPECT_EQ(read["records"][0]["offset"], "2");
}

TEST_P(Groups, APartitionNamedTwiceIsResetOnce) {
  node_.produce(node_.at("t", 1), 3);
  ASSERT_EQ(node_.commit("g", {}, node_.at("t", 1), 3), "");
  std::string answer;
  node_.groups().reset_offsets("g", R"({"topic":"t","partitions":[1,1],"to":"earliest"})",
                               [&](const Result<std::string>& done) { answer = *done; });
  node_.settle();
  EXPECT_EQ(nlohmann::json::parse(answer)["partitions"].size(), 1u);
}

TEST_P(Groups, ResetOnlyWhenEmptyAndDryRunsChangeNothing) {
  node_.produce(node_.at("t", 0), 5);
  auto member = join(spec());
  auto reset = [&](const std::string& body) {
    std::string out;
    node_.groups().reset_offsets(
        "g", body, [&](const Result<std::string>& json) { out = json ? *json : std::string(json.error().code); });
    node_.settle();
    return out;
  };
  EXPECT_EQ(reset(R"({"topic":"t","to":"latest"})"), "GROUP_NOT_EMPTY");
  ASSERT_TRUE(node_.coordinator().leave("g", member->identity()));
  node_.settle();
  auto moves = nlohmann::json::parse(reset(R"({"topic":"t","partitions":[0],"to":"latest","dryRun":true})"));
  EXPECT_EQ(moves["partitions"][0]["to"], "5");
  EXPECT_EQ(node_.committed("g", node_.at("t", 0)), std::nullopt);
  reset(R"({"topic":"t","to":{"offset":"0"}})");
  EXPECT_EQ(node_.committed("g", node_.at("t", 0))->next_offset, 0u);
  moves = nlohmann::json::parse(reset(R"({"to":"latest"})"));
  EXPECT_EQ(moves["partitions"].size(), 4u);
  EXPECT_EQ(moves["partitions"][0]["from"], "0");
  EXPECT_EQ(reset(R"({"topic":"t","to":{"offset":"6"}})"), "OFFSET_OUT_OF_RANGE");
  EXPECT_EQ(reset(R"({"topic":"no","to":"latest"})"), "UNKNOWN_TOPIC");
}

// What others met, each by the name under which it is known.
class BusFaults : public Groups {};

TEST_P(BusFaults, DeletedGroupReturnsAfterRestart) {
  for (uint32_t i = 0; i < 4; ++i) node_.commit("g", {}, node_.at("t", i), 1);
  // Commits that are still under way when the deletion is asked for.
  std::string removed;
  for (uint32_t i = 0; i < 4; ++i) {
    bus::ConsumedOffset one;
    one.from = node_.at("t", i);
    one.next_offset = 2;
    node_.coordinator().commit("g", {}, {one}, [](const Status&) {});
  }
  node_.coordinator().remove("g", [&](const Status& status) { removed = status ? "gone" : "refused"; });
  node_.settle();
  EXPECT_EQ(removed, "gone");
  node_.restart();
  EXPECT_EQ(node_.coordinator().groups(), 0u);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(node_.committed("g", node_.at("t", i)), std::nullopt);
}

TEST_P(BusFaults, StaticMemberIsForgottenOnRestart) {
  auto first = join(spec("i"));
  auto second = join(spec("i"));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->generation, 1) << "it took its own place";
  EXPECT_EQ(code(settle(first->member_id)), "FENCED_INSTANCE_ID") << "or two of one instance would join by turns";
  node_.restart();
  EXPECT_EQ(code(settle(first->member_id)), "UNKNOWN_MEMBER_ID");
  auto third = join(spec("i"));
  ASSERT_TRUE(third) << to_string(third.error());
  EXPECT_EQ(third->generation, 1);
  EXPECT_EQ(third->assignment["t"].size(), 4u);
  EXPECT_EQ(node_.commit("g", second->identity(), node_.at("t", 0), 1), "FENCED_INSTANCE_ID");
}

TEST_P(BusFaults, CommitMetadataLost) {
  const Bytes note(bus::kMaxOffsetMetadataBytes, 'n');
  bus::ConsumedOffset one;
  one.from = node_.at("t", 0);
  one.next_offset = 1;
  one.leader_epoch = 4;
  one.metadata = note;
  node_.coordinator().commit("g", {}, {one}, [](const Status&) {});
  node_.settle();
  node_.restart();
  auto back = node_.committed("g", node_.at("t", 0));
  EXPECT_EQ(back->metadata, note);
  EXPECT_EQ(back->leader_epoch, 4);
  EXPECT_EQ(back->commit_ms, clock_.wall_ms());
  EXPECT_EQ(node_.commit("g", {}, node_.at("t", 0), 2, note + "n"), "OFFSET_METADATA_TOO_LARGE");
}

INSTANTIATE_TEST_SUITE_P(Carriers, Groups, testing::Values(bus::Carrier::kMemory, bus::Carrier::kLed),
                         [](const auto& one) { return std::string(name_of(one.param)); });
INSTANTIATE_TEST_SUITE_P(Carriers, BusFaults, testing::Values(bus::Carrier::kMemory, bus::Carrier::kLed),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST(ConsumerProtocol, ReadsWhatItWroteAndSurvivesWhatIsForged) {
  const Subscription subscription{{"a", "b"}, "data"};
  const Bytes bytes = encode(subscription);
  EXPECT_EQ(to_hex(bytes),
            "0000"
            "00000002"
            "000161"
            "000162"
            "0000000464617461");
  EXPECT_EQ(parse_subscription(bytes)->topics, subscription.topics);
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(parse_subscription(bytes.substr(0, cut)));
  const TopicPartitions assignment{{"a", {0, 2}}};
  EXPECT_EQ(to_hex(encode(assignment)),
            "0000"
            "00000001"
            "000161"
            "00000002"
            "00000000"
            "00000002"
            "ffffffff");
  EXPECT_EQ(*parse_assignment(encode(assignment)), assignment);
  EXPECT_TRUE(parse_assignment("")->empty());
  EXPECT_FALSE(parse_assignment(Bytes("\0\0\x7f\xff\xff\xff", 6))) << "a forged count";
}

TEST(Assignors, ShareAsKafkasDo) {
  const std::vector<Subscriber> members = {{"1", "1", {"t", "u"}}, {"2", "2", {"t"}}};
  auto range = assign_range(members, {{"t", 3}, {"u", 1}});
  EXPECT_EQ(range["1"], (TopicPartitions{{"t", {0, 1}}, {"u", {0}}}));
  EXPECT_EQ(range["2"], (TopicPartitions{{"t", {2}}}));
  auto turns = assign_round_robin(members, {{"t", 3}, {"u", 1}});
  EXPECT_EQ(turns["1"], (TopicPartitions{{"t", {0, 2}}, {"u", {0}}}));
  EXPECT_EQ(turns["2"], (TopicPartitions{{"t", {1}}}));
}

}  // namespace
}  // namespace millrace::group
