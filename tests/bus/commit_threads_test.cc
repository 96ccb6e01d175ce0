// Many threads commit and read at once; most of what it finds, the thread sanitizer finds.
#include <atomic>

#include "tests/bus/pipeline_fixture.h"

namespace millrace::bus {
namespace {

class CommitThreads : public PipelineFixture {
 protected:
  static constexpr int kWaiting = 8, kSubmitting = 4, kReading = 3, kCommits = 60;

  /// Counts in a row what it appends: row and high watermark are equal in every view.
  Commit count_up(int writer, uint64_t count) {
    Commit commit = put(std::to_string(writer), std::to_string(count));
    commit.appends.push_back({places[static_cast<size_t>(writer)], batch(1)});
    return commit;
  }
  void read_until(const std::atomic<bool>& stop) {
    std::vector<uint64_t> seen(places.size(), 0);
    while (!stop.load()) {
      auto view = log().view();
      for (size_t writer = 0; writer < places.size(); ++writer) {
        auto row = view->get(Table::kGroups, home.key(std::to_string(writer)));
        ASSERT_TRUE(row);
        uint64_t counted = *row ? std::stoull((*row)->value) : 0;
        uint64_t high_watermark = view->partition(places[writer])->high_watermark;
        ASSERT_EQ(counted, high_watermark) << "row and records belong together";
        ASSERT_GE(high_watermark, seen[writer]) << "a high watermark never falls";
        seen[writer] = high_watermark;
        if (high_watermark > 0) {
          ASSERT_EQ(view->fetch(places[writer], high_watermark - 1, 1)->size(), 1u);
        }
      }
    }
  }

  std::vector<TopicPartition> places;
};

TEST_F(CommitThreads, EveryViewIsConsistentAndNoAnswerIsLost) {
  options.log.segment_bytes = 4096;
  open();
  for (int i = 0; i < kWaiting + kSubmitting; ++i) places.push_back(create_topic("t" + std::to_string(i)));
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0}, wakes{0};
  std::vector<std::thread> writers, readers;
  for (int i = 0; i < kReading; ++i) readers.emplace_back([&] { read_until(stop); });
  for (int i = 0; i < kWaiting; ++i)
    writers.emplace_back([&, i] {
      for (uint64_t n = 1; n <= kCommits; ++n) {
        TopicPartition next = places[static_cast<size_t>((i + 1) % kWaiting)];
        auto watch = log().watch({{next, n}}, [&] { ++wakes; });
        auto receipt = log().submit_and_wait(count_up(i, n));
        ASSERT_TRUE(receipt) << to_string(receipt.error());
        ASSERT_EQ(receipt->appends.front().base_offset, n - 1);
        ASSERT_GE(log().view()->partition(places[static_cast<size_t>(i)])->high_watermark, n);
        ++answered;
      }
    });
  for (int i = kWaiting; i < kWaiting + kSubmitting; ++i)
    writers.emplace_back([&, i] {
      for (uint64_t n = 1; n <= kCommits; ++n) {
        Commit commit = count_up(i, n);
        commit.done = [&, n](const CommitResult& result) {
          EXPECT_TRUE(result && result->appends.front().base_offset == n - 1);
          ++answered;
        };
        log().submit(std::move(commit));
      }
    });
  for (auto& thread : writers) thread.join();
  ASSERT_EQ(code_of(Commit(home)), "");
  stop = true;
  for (auto& thread : readers) thread.join();
  EXPECT_EQ(answered, (kWaiting + kSubmitting) * kCommits);
  EXPECT_EQ(log().watches(), 0u);
  EXPECT_EQ(log().stats().waiting, 0);
  EXPECT_EQ(log().stats().waiting_bytes, 0);
  durable->crash();
  durable->start();
  for (const auto& place : places) {
    EXPECT_EQ(log().view()->partition(place)->high_watermark, static_cast<uint64_t>(kCommits));
    int records = 0;
    const auto batches = log().view()->fetch(place, 0, 1u << 30).value();
    for (const Bytes& batch : batches) records += check_batch(batch)->record_count;
    EXPECT_EQ(records, kCommits);
  }
}

}  // namespace
}  // namespace millrace::bus
