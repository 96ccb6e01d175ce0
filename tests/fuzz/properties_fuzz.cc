#include "config/load.h"
#include "config/properties.h"
#include "config/value.h"
#include "tests/fuzz/target.h"

namespace millrace::fuzz {

std::vector<std::string> seed_inputs() {
  return {
      "# a comment\n[node]\nshouldAbortWhenDispatcherIsFull = true\ntransactionDisruptorSlotCount = 4'096\n\n[http]\n"
      "listen = 127.0.0.1:8080, [::1]:8080\nmaxBodySize = 16MB\nrequestTimeout = 30s\n",
      "\xef\xbb\xbf[storage]\r\ndirectory = /var/lib/millrace\r\ncommitDurability = sync\r\nmaxWalSize=64MB\r\n",
      "[bus]\ndefaultPartitions = 4\nidempotencyWindow = 1d\n[log]\nlevel = info\n",
      "30s",
      "64MB",
      "[::1]:9092"};
}

std::vector<std::string> dictionary() {
  return {"[node]",
          "[storage]",
          "[bus]",
          "[http]",
          "[log]",
          "\r\n",
          "\n",
          " = ",
          " #",
          "'",
          "18446744073709551616",
          "TB",
          "ms",
          "d",
          "true",
          "false",
          "0.0.0.0:1",
          "[::]:",
          "async",
          ","};
}

}  // namespace millrace::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  const std::string_view text = fuzz::text_of(data, size);
  const config::Properties properties = config::parse_properties(text, "file");
  for (const config::Entry& entry : properties.entries)
    fuzz::require(!entry.section.empty() && !entry.key.empty(), "an entry has a section and a key");

  const config::Environment environment;
  const auto loaded = config::load_text(text, "file", {}, environment);
  if (loaded) {
    const std::string printed = config::print(*loaded);
    const auto again = config::load_text(printed, "printed", {}, environment);
    fuzz::require(again.has_value(), "what --print-config writes can be read");
    fuzz::require(config::print(*again).size() > 0, "and printed");
  } else {
    fuzz::require(!loaded.error().empty(), "a refusal says why");
  }

  if (const auto value = config::parse_size(text))
    fuzz::require(config::parse_size(config::format_size(*value)) == *value, "a size is read back as written");
  if (const auto value = config::parse_duration(text))
    fuzz::require(config::parse_duration(config::format_duration(*value)) == *value, "so is a duration");
  if (const auto value = config::parse_integer(text))
    fuzz::require(config::parse_integer(config::format_integer(*value)) == *value, "so is an integer");
  if (const auto value = config::parse_endpoint(text))
    fuzz::require(config::parse_endpoint(config::format_endpoint(*value)) == *value, "so is an endpoint");
  (void)config::show(text);
  return 0;
}
