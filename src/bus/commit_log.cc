#include "bus/commit_log.h"

#include <spdlog/fmt/fmt.h>

namespace millrace::bus {

std::string describe(const TopicPartition& partition) {
  return fmt::format("partition {} of topic {}", partition.partition, partition.topic.to_string());
}

tl::unexpected<Error> unknown_partition(const TopicPartition& partition) {
  return fail(ErrorKind::kNotFound, "UNKNOWN_TOPIC_OR_PARTITION", fmt::format("there is no {}", describe(partition)));
}

tl::unexpected<Error> offset_out_of_range(const TopicPartition& partition, uint64_t offset,
                                          const PartitionState& state) {
  return fail(ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE",
              fmt::format("offset {} of {} is outside [{}, {}]", offset, describe(partition), state.log_start,
                          state.high_watermark));
}

}  // namespace millrace::bus
