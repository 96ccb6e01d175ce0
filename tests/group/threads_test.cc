// Members on threads of their own, with the carrier's and the timer's beside them. The durable thread carrier: its
// answers come from a thread of their own as well. Most telling under the thread sanitizer.

#include <gtest/gtest.h>

#include <future>
#include <random>
#include <thread>

#include "api/topics.h"
#include "base/timer_thread.h"
#include "group/consumers.h"
#include "tests/bus/carriers.h"
#include "tests/support/random_seed.h"

namespace millrace::group {
namespace {

constexpr uint32_t kPartitions = 8;
constexpr int kThreads = 6, kRounds = 12;

class Threads : public testing::Test {
 protected:
  Threads() : durable_(clock_, {}), timer_(clock_, health_), topics_(log(), clock_, api::TopicsApi::Options()) {
    std::promise<void> made;
    topics_.create(R"({"name":"t","partitions":8})", std::nullopt,
                   [&](const Result<std::string>&) { made.set_value(); });
    made.get_future().wait();
    topic_ = topics_.find(*log().view(), "t")->id;
    const TimerThread::Task task = timer_.add([this] { return coordinator_->run_due(); }, 0);
    Coordinator::Options options;
    options.limits.initial_rebalance_delay_ms = 0;
    options.limits.min_session_timeout_ms = 1'000;
    options.wake_at = [this, task](int64_t due_ms) { timer_.run_by(task, due_ms); };
    coordinator_ = *Coordinator::start(log(), clock_, std::move(options));
    consumers_ = std::make_unique<Consumers>(*coordinator_, log());
    timer_.start();
  }
  ~Threads() override {
    timer_.stop();
    durable_.pipeline().close();
  }
  bus::CommitLog& log() { return durable_.pipeline(); }

  Result<Membership> ask(const std::function<void(Consumers::Reply)>& what) {
    std::promise<Result<Membership>> answer;
    what([&](Result<Membership> member) { answer.set_value(std::move(member)); });
    return answer.get_future().get();
  }
  Status commit(const Membership& member) {
    std::vector<bus::ConsumedOffset> offsets;
    for (const auto& [topic, partitions] : member.assignment)
      for (uint32_t partition : partitions) {
        bus::ConsumedOffset offset;
        offset.from = {topic_, partition};
        offset.next_offset = static_cast<uint64_t>(member.generation);
        offsets.push_back(offset);
      }
    std::promise<Status> answer;
    coordinator_->commit("g", member.identity(), std::move(offsets), [&](Status status) { answer.set_value(status); });
    return answer.get_future().get();
  }
  /// Comes and goes; every commit that is taken raises the generation that owns its partitions.
  void live(uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < kRounds; ++round) {
      ConsumerSpec spec;
      spec.topics = {"t"};
      spec.client_id = "thread";
      spec.session_timeout_ms = 30'000;
      spec.rebalance_timeout_ms = 30'000;
      auto member = ask([&](Consumers::Reply reply) { consumers_->join("g", spec, std::move(reply)); });
      for (uint64_t turns = random() % 4; member && turns > 0; --turns) {
        const std::string id = member->member_id;
        auto hold = coordinator_->hold("g", id, member->generation, [] {});
        if (commit(*member)) taken_.fetch_add(1);
        member = ask([&](Consumers::Reply reply) { consumers_->settle("g", id, std::move(reply)); });
      }
      ASSERT_TRUE(member) << to_string(member.error());
      coordinator_->describe("g");
      ASSERT_TRUE(coordinator_->leave("g", {member->member_id, std::nullopt, member->generation}));
    }
  }

  SystemClock& clock_ = SystemClock::instance();
  Health health_{clock_};
  bus::DurableLog durable_;
  TimerThread timer_;
  api::TopicsApi topics_;
  Uuid topic_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Consumers> consumers_;
  std::atomic<uint64_t> taken_{0};
};

TEST_F(Threads, ThatComeAndGoAllGetTheirAnswers) {
  const uint64_t seed = tests::random_seed();
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) threads.emplace_back([this, seed, i] { live(seed + i); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(coordinator_->members(), 0u);
  EXPECT_EQ(coordinator_->describe("g")->state, GroupState::kEmpty);
  EXPECT_GT(taken_, 0u);
  auto offsets = coordinator_->offsets(*log().view(), "g");
  ASSERT_TRUE(offsets);
  EXPECT_LE(offsets->size(), kPartitions);
  for (const CommittedOffset& offset : *offsets)
    EXPECT_LE(offset.next_offset, static_cast<uint64_t>(coordinator_->describe("g")->generation));
}

}  // namespace
}  // namespace millrace::group
