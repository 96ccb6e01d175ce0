#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "bus/commit_log.h"
#include "bus/topic.h"

namespace millrace::worker {

/// A topic by its name. Errors: kNotFound UNKNOWN_TOPIC, those of View::get.
Result<bus::Topic> find_topic(const bus::View& view, std::string_view name);

/// Makes the topic unless it is there. May block. `max_message_bytes` 0: the default. Errors: those of a Commit.
Status ensure_topic(bus::CommitLog& log, const Clock& clock, std::string_view name, uint32_t partitions,
                    std::string_view cleanup_policy = "delete", int64_t max_message_bytes = 0);

}  // namespace millrace::worker
