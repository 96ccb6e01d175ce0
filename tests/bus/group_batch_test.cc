#include "bus/group_batch.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"

namespace millrace::bus {
namespace {

constexpr size_t kNoBound = 1 << 30;

Bytes batch_of(const std::vector<RecordView>& records) {
  BatchBuilder builder;
  for (const RecordView& record : records) builder.add(record);
  return builder.finish();
}
Bytes batch_of(ByteView value, int64_t timestamp_ms = 1'000) {
  return batch_of({RecordView{0, timestamp_ms, std::nullopt, value, {}}});
}
GroupBatch begin(const Bytes& batch) {
  return GroupBatch(0, *check_batch(batch), batch);
}
bool join(GroupBatch& group, const Bytes& batch, size_t max_bytes = kNoBound) {
  return group.join(*check_batch(batch), batch, max_bytes);
}
/// "timestamp key value" of each record, "-" for null.
std::vector<std::string> texts_of(const Bytes& batch) {
  const BatchInfo info = check_batch(batch).value();
  std::vector<std::string> texts;
  for (RecordReader reader(info, batch); reader.more();) {
    RecordView record;
    EXPECT_TRUE(reader.next(record));
    EXPECT_EQ(record.offset, static_cast<int64_t>(texts.size()));
    std::string text = std::to_string(record.timestamp_ms) + " ";
    text += record.key.value_or("-");
    text += " ";
    text += record.value.value_or("-");
    for (const auto& header : record.headers) text.append(" ").append(header.name).append("=").append(*header.value);
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(GroupBatch, StaysAsItCameWhenNothingJoins) {
  const Bytes batch = batch_of("v");
  GroupBatch group = begin(batch);
  EXPECT_EQ(group.bytes(), batch.size());
  EXPECT_EQ(group.finish(), batch);
}

TEST(GroupBatch, JoinsRecordsInOrderWithTheirOwnTimes) {
  GroupBatch group = begin(batch_of("first", 5'000));
  EXPECT_TRUE(join(group, batch_of({{0, 4'000, "k", std::nullopt, {{"h", "x"}}}, {0, 9'000, "k2", "v2", {}}})));
  EXPECT_TRUE(join(group, batch_of("last", -1)));
  const size_t bytes = group.bytes();
  const Bytes joined = group.finish();
  EXPECT_EQ(joined.size(), bytes);
  EXPECT_EQ(texts_of(joined), (std::vector<std::string>{"5000 - first", "4000 k - h=x", "9000 k2 v2", "-1 - last"}));
  const BatchInfo info = check_batch(joined).value();
  EXPECT_EQ(info.record_count, 4);
  EXPECT_EQ(info.last_offset_delta, 3);
  EXPECT_EQ(info.max_timestamp_ms, 9'000);
}

TEST(GroupBatch, KeepsToItsBounds) {
  GroupBatch group = begin(batch_of("v"));
  EXPECT_FALSE(join(group, batch_of(std::string(GroupBatch::kMaxJoinedBytes, 'x'))));
  EXPECT_FALSE(join(group, batch_of("v"), group.bytes())) << "max.message.bytes";
  int joined = 1;
  while (join(group, batch_of(std::string(1'000, 'x')))) ++joined;
  EXPECT_EQ(joined, 17);
  EXPECT_LE(group.bytes(), GroupBatch::kMaxJoinedBytes);
  EXPECT_EQ(texts_of(group.finish()).size(), 17u);
}

TEST(GroupBatch, LeavesAloneWhatAProducerMade) {
  auto changed = [](size_t at, char byte) {
    Bytes batch = batch_of("v");
    batch[at] = byte;
    store_be(batch.data() + 17, crc32c(ByteView(batch).substr(21)));
    return batch;
  };
  const Bytes compressed = changed(22, 1), transactional = changed(22, 0x10), with_producer = changed(50, 7),
              with_hole = changed(26, 1), broken_record = changed(kBatchHeaderBytes + 4, 100);
  for (const Bytes* batch : {&compressed, &transactional, &with_producer, &with_hole, &broken_record}) {
    GroupBatch group = begin(batch_of("v"));
    EXPECT_FALSE(join(group, *batch));
    EXPECT_EQ(group.finish(), batch_of("v"));
    GroupBatch other = begin(*batch);
    EXPECT_FALSE(join(other, batch_of("v")));
    EXPECT_EQ(other.finish(), *batch);
  }
}

TEST(GroupBatch, TimesBeyondAnyClockStayByThemselves) {
  GroupBatch group = begin(batch_of("v", INT64_MAX));
  EXPECT_FALSE(join(group, batch_of("v", INT64_MIN)));
  EXPECT_FALSE(join(group, batch_of("v", 0)));
}

}  // namespace
}  // namespace millrace::bus
