#include "api/workers.h"

#include <fmt/format.h>

#include <limits>

#include "api/json.h"

namespace millrace::api {
namespace {

/// `fn` appends one element after another.
template <typename List, typename Fn>
void append_list(std::string& out, const List& list, Fn&& fn) {
  out += '[';
  for (const auto& element : list) {
    if (out.back() != '[') out += ',';
    fn(element);
  }
  out += ']';
}

void append_partition(std::string& out, const worker::PartitionStatus& partition) {
  out += R"({"processor":)";
  append_string(out, partition.processor);
  out += fmt::format(R"(,"partition":{},"state":"{}","epoch":"{}","lag":"{}","parked":{},"deadLetters":"{}")",
                     partition.partition, worker::to_string(partition.state), partition.epoch, partition.lag(),
                     partition.parked, partition.dead_letters);
  out += R"(,"inputs":)";
  append_list(out, partition.inputs, [&](const worker::PartitionStatus::Input& input) {
    out += R"({"topic":)";
    append_string(out, input.topic);
    out += fmt::format(R"(,"position":"{}","highWatermark":"{}"}})", input.position, input.high_watermark);
  });
  if (!partition.problem.empty()) {
    out += R"(,"problem":)";
    append_string(out, partition.problem);
  }
  out += '}';
}

}  // namespace

std::string WorkersApi::list() const {
  const worker::PoolStatus status = pool_.describe();
  std::string out = R"({"workers":)";
  append_list(out, status.workers, [&](const worker::WorkerStatus& one) {
    out += fmt::format(R"({{"id":"{}","state":"{}")", one.id, worker::to_string(one.state));
    if (!one.step.empty()) {
      out += R"(,"step":)";
      append_string(out, one.step);
      out += fmt::format(R"(,"stepAgeMs":"{}")", one.step_age_ns / 1'000'000);
    }
    out += R"(,"partitions":)";
    append_list(out, one.partitions,
                [&](const worker::PartitionStatus& partition) { append_partition(out, partition); });
    out += '}';
  });
  out += R"(,"processors":)";
  append_list(out, status.processors, [&](const worker::PoolStatus::Processor& processor) {
    out += R"({"name":)";
    append_string(out, processor.name);
    if (!processor.problem.empty()) {
      out += R"(,"problem":)";
      append_string(out, processor.problem);
    }
    out += '}';
  });
  return out + '}';
}

Status WorkersApi::stop(uint64_t id) {
  if (id > std::numeric_limits<worker::WorkerId>::max())
    return fail(ErrorKind::kNotFound, "UNKNOWN_WORKER", fmt::format("there is no worker {}", id));
  return pool_.stop_worker(static_cast<worker::WorkerId>(id));
}

}  // namespace millrace::api
