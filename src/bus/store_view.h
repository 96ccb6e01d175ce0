#pragma once

#include <memory>

#include "bus/commit_log.h"
#include "bus/log_state.h"

namespace millrace::bus {

/// The View over the store: a snapshot, and the topics and partitions that belong to it.
class StoreView final : public View {
 public:
  StoreView(std::shared_ptr<const store::Snapshot> snapshot, std::shared_ptr<const TopicMap> topics,
            PartitionTable partitions)
      : snapshot_(std::move(snapshot)), topics_(std::move(topics)), partitions_(std::move(partitions)) {}

  // For maintenance, which has to know where things lie.
  const store::Snapshot& snapshot() const { return *snapshot_; }
  const TopicMap& topics() const { return *topics_; }
  const PartitionTable& partitions() const { return partitions_; }

  Result<std::optional<Row>> get(store::Table table, ByteView key) const override;
  Result<std::vector<std::pair<Bytes, Row>>> list(store::Table table, ByteView prefix, ByteView after,
                                                  size_t limit) const override;
  std::optional<PartitionState> partition(const TopicPartition& partition) const override;
  Result<std::vector<Bytes>> fetch(const TopicPartition& partition, uint64_t offset, size_t max_bytes) const override;
  Result<uint64_t> offset_for_time(const TopicPartition& partition, int64_t timestamp_ms) const override;

 private:
  struct Found {
    const PartitionLog* log = nullptr;
    uint32_t id = 0;
  };
  Found find(const TopicPartition& partition) const;
  /// Appends batches of one range to `fetched` until `max_bytes` in all. True when there is room for more.
  Result<bool> fetch_range(const TopicPartition& partition, uint32_t id, const SegmentRange& range, uint64_t offset,
                           size_t max_bytes, std::vector<Bytes>& fetched, size_t& bytes) const;
  Result<std::optional<uint64_t>> search_range(const TopicPartition& partition, uint32_t id, const SegmentRange& range,
                                               uint64_t from, int64_t timestamp_ms) const;

  const std::shared_ptr<const store::Snapshot> snapshot_;
  const std::shared_ptr<const TopicMap> topics_;
  const PartitionTable partitions_;
};

/// Splits a row of state as it lies in the store. Errors: kCorruption ROW_DAMAGED.
Result<Row> parse_row(store::Table table, ByteView key, ByteView stored);
/// Reads and splits one; nullopt when it is absent. Errors: as above, of the store.
Result<std::optional<Row>> read_row(const store::Snapshot& snapshot, store::Table table, ByteView key);

}  // namespace millrace::bus
