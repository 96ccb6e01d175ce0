#include "worker/processor.h"

#include <spdlog/fmt/fmt.h>

namespace millrace::worker {

bus::Home Processor::home(uint32_t partition) const {
  auto home = bus::Home::make(bus::HomeKind::kProcessor, fmt::format("{}/{}", name(), partition));
  MILLRACE_ASSERT(home.has_value(), "a processor's name is a topic name");
  return *std::move(home);
}

}  // namespace millrace::worker
