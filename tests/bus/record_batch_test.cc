#include "bus/record_batch.h"

#include <gtest/gtest.h>

#include <random>

#include "bus/partitioner.h"
#include "bus/varint.h"
#include "tests/support/random_seed.h"

namespace millrace::bus {
namespace {

RecordView record(std::optional<ByteView> key, std::optional<ByteView> value, int64_t timestamp_ms = 1000) {
  RecordView view;
  view.key = key;
  view.value = value;
  view.timestamp_ms = timestamp_ms;
  return view;
}

Bytes sample_batch() {
  BatchBuilder builder;
  auto first = record("k", "v", 1000);
  first.headers = {{"name", "value"}, {"null", std::nullopt}};
  builder.add(first);
  builder.add(record(std::nullopt, std::nullopt, 998));
  builder.add(record("", "", 1005));
  return builder.finish();
}

TEST(RecordBatch, ReadsBackWhatWasBuilt) {
  Bytes batch = sample_batch();
  assign_offset(batch, 41, 7);
  auto info = check_batch(batch);
  ASSERT_TRUE(info) << to_string(info.error());
  EXPECT_EQ(info->base_offset, 41);
  EXPECT_EQ(info->next_offset(), 44);
  EXPECT_EQ(info->leader_epoch, 7);
  EXPECT_EQ(info->max_timestamp_ms, 1005);
  RecordReader reader(*info, batch);
  RecordView view;
  ASSERT_TRUE(reader.next(view));
  EXPECT_EQ(view.offset, 41);
  EXPECT_EQ(view.key, "k");
  ASSERT_EQ(view.headers.size(), 2u);
  EXPECT_EQ(view.headers[0].value, "value");
  EXPECT_FALSE(view.headers[1].value.has_value());
  ASSERT_TRUE(reader.next(view));
  EXPECT_EQ(view.timestamp_ms, 998);
  EXPECT_FALSE(view.key.has_value());
  EXPECT_FALSE(view.value.has_value());
  EXPECT_TRUE(view.headers.empty());
  ASSERT_TRUE(reader.next(view));
  EXPECT_EQ(view.key, "") << "an empty key is not a null key";
  EXPECT_FALSE(reader.more());
}

// The bytes as the protocol guide lays them out, written by hand: {offset 0, one record, key "a", value "b", time 5}.
TEST(RecordBatch, HasKafkasBytes) {
  BatchBuilder builder;
  builder.add(record("a", "b", 5));
  Bytes batch = builder.finish();
  EXPECT_EQ(to_hex(ByteView(batch).substr(0, 17)), "0000000000000000" "0000003a" "00000000" "02");
  EXPECT_EQ(to_hex(ByteView(batch).substr(21)),
            "0000" "00000000" "0000000000000005" "0000000000000005" "ffffffffffffffff" "ffff" "ffffffff" "00000001"
            "10" "00" "00" "00" "02" "61" "02" "62" "00");
}

TEST(RecordBatch, OffsetsLieOutsideTheCrcAndEveryOtherByteIsCovered) {
  Bytes batch = sample_batch();
  assign_offset(batch, 1'000'000, 3);
  ASSERT_TRUE(check_batch(batch));
  for (size_t i = 16; i < batch.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes damaged = batch;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_FALSE(check_batch(damaged)) << "byte " << i << " bit " << bit;
    }
  }
}

TEST(RecordBatch, AppendTimeReplacesTheRecordsOwn) {
  Bytes batch = sample_batch();
  assign_append_time(batch, 777'777);
  auto info = check_batch(batch);
  ASSERT_TRUE(info) << to_string(info.error());
  RecordReader reader(*info, batch);
  RecordView view;
  while (reader.more()) {
    ASSERT_TRUE(reader.next(view));
    EXPECT_EQ(view.timestamp_ms, 777'777);
  }
}

TEST(RecordBatch, RefusesWhatIsNoBatchAndSaysWhy) {
  Bytes batch = sample_batch();
  EXPECT_EQ(check_batch("").error().code, "CORRUPT_MESSAGE");
  EXPECT_EQ(check_batch(ByteView(batch).substr(0, batch.size() - 1)).error().code, "CORRUPT_MESSAGE");
  EXPECT_EQ(check_batch(batch + "x").error().code, "CORRUPT_MESSAGE") << "one batch a partition";
  Bytes old = batch;
  old[16] = 1;
  EXPECT_EQ(check_batch(old).error().code, "UNSUPPORTED_MAGIC");
  Bytes negative = batch;
  store_be(negative.data() + 8, int32_t{-1});
  EXPECT_EQ(read_batch_info(negative).error().code, "CORRUPT_MESSAGE");
}

TEST(RecordBatch, ACompressedBatchPassesUnopened) {
  Bytes batch = sample_batch();
  batch[22] = static_cast<char>(Compression::kZstd);
  auto info = read_batch_info(batch);
  ASSERT_TRUE(info);
  RecordView view;
  EXPECT_EQ(RecordReader(*info, batch).next(view).error().code, "COMPRESSED_BATCH");
}

// Damage behind the fixed part never makes the reader leave the batch or allocate beyond it (ASan would tell).
TEST(RecordBatch, RandomDamageIsAnErrorOrAnotherSoundReading) {
  uint64_t seed = tests::random_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  Bytes batch = sample_batch();
  for (int round = 0; round < 20'000; ++round) {
    Bytes damaged = batch;
    for (uint64_t n = 1 + random() % 4; n > 0; --n)
      damaged[kBatchHeaderBytes + random() % (damaged.size() - kBatchHeaderBytes)] = static_cast<char>(random());
    auto info = read_batch_info(damaged);
    ASSERT_TRUE(info);
    RecordReader reader(*info, damaged);
    RecordView view;
    while (reader.more() && reader.next(view)) EXPECT_LE(view.headers.size(), damaged.size());
  }
}

TEST(RecordBatch, RandomRecordsRoundTrip) {
  uint64_t seed = tests::random_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  BatchBuilder builder;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<std::string, std::string>> written(1 + random() % 20);
    std::vector<int64_t> times;
    size_t bound = kBatchHeaderBytes;
    for (auto& [key, value] : written) {
      key.assign(random() % 40, static_cast<char>(random()));
      value.assign(random() % 3000, static_cast<char>(random()));
      times.push_back(static_cast<int64_t>(random() % 4'000'000'000'000));
      auto view = record(key, value, times.back());
      bound += record_bytes_bound(view);
      builder.add(view);
    }
    size_t announced = builder.bytes();
    Bytes batch = builder.finish();
    EXPECT_EQ(batch.size(), announced);
    EXPECT_LE(batch.size(), bound);
    auto info = check_batch(batch);
    ASSERT_TRUE(info) << to_string(info.error());
    RecordReader reader(*info, batch);
    RecordView view;
    for (size_t i = 0; i < written.size(); ++i) {
      ASSERT_TRUE(reader.next(view));
      EXPECT_EQ(view.key, written[i].first);
      EXPECT_EQ(view.value, written[i].second);
      EXPECT_EQ(view.timestamp_ms, times[i]);
      EXPECT_EQ(view.offset, static_cast<int64_t>(i));
    }
    EXPECT_FALSE(reader.more());
  }
}

TEST(Varint, RoundTripsAtTheEdges) {
  for (int64_t value : {int64_t{0}, int64_t{-1}, int64_t{63}, int64_t{64}, int64_t{-64}, int64_t{-65}, INT64_MAX, INT64_MIN}) {
    Bytes out;
    append_varint(out, value);
    EXPECT_EQ(out.size(), varint_bytes(value));
    ByteView rest = out;
    EXPECT_EQ(take_varlong(rest), value);
    EXPECT_TRUE(rest.empty());
  }
}

TEST(Varint, RefusesWhatDoesNotEndOrFit) {
  ByteView endless("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_FALSE(take_varlong(endless));
  ByteView cut("\x80");
  EXPECT_FALSE(take_varlong(cut));
  Bytes large;
  append_varint(large, int64_t{1} << 31);
  ByteView rest = large;
  EXPECT_FALSE(take_varint(rest));
}

// Pinned by Kafka's own clients: a change here would scatter keys.
TEST(Partitioner, HashesAsKafkasJavaClientDoes) {
  EXPECT_EQ(murmur2("21"), -973932308);
  EXPECT_EQ(murmur2("foobar"), -790332482);
  EXPECT_EQ(murmur2("a-little-bit-long-string"), -985981536);
  EXPECT_EQ(murmur2("a-little-bit-longer-string"), -1486304829);
  EXPECT_EQ(murmur2("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"), -58897971);
  EXPECT_EQ(murmur2("abc"), 479470107);
  EXPECT_EQ(partition_of_key("21", 8), static_cast<uint32_t>(-973932308 & 0x7fffffff) % 8);
}

}  // namespace
}  // namespace millrace::bus
