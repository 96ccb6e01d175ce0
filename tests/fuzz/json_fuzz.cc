#include "api/json.h"
#include "tests/fuzz/target.h"

namespace millrace::fuzz {

std::vector<std::string> seed_inputs() {
  return {R"({"name":"orders","partitions":8,"configs":{"retention.ms":"-1","cleanup.policy":null}})",
          R"([0,-0,1.5e-3,1E400,9223372036854775807,18446744073709551615,-9223372036854775808,"\u00e9\ud83d\ude00\n"])",
          R"({"a":{"a":[true,false,null,[],{}]},"b":"2026-02-29T23:59:60.999Z"})",
          " \t\r\n\"\xc3\xa9\xf0\x9f\x98\x80\" ",
          std::string(64, '[') + std::string(64, ']'),
          "\"2024-02-29T12:30:00.123456789+05:30\""};
}

std::vector<std::string> dictionary() {
  return {"{\"\":", "\\ud800", "\\udc00",         "\\u0000",    "\xed\xa0\x80", "\xc0\x80", "\xef\xbb\xbf", "1e999",
          "-",      "00",      "\"a\":1,\"a\":2", "[[[[[[[[",   "]]]]]]]]",     "NaN",      "Infinity",     "true",
          "null",   "Z",       "+00:00",          "9999-12-31T"};
}

}  // namespace millrace::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  const std::string_view text = fuzz::text_of(data, size);
  const auto parsed = api::parse_json(text);
  // is_json decides how a record's value is shown; it must mean the same as the parser.
  fuzz::require(parsed.has_value() == api::is_json(text), "is_json agrees with parse_json");
  if (const auto ms = api::parse_time(text)) {
    const auto written = api::format_time(*ms);
    fuzz::require(!written || api::parse_time(*written) == ms, "a time is read back as it was written");
  }
  if (!parsed) return 0;
  const std::string dumped = parsed->dump();
  const auto again = api::parse_json(dumped);
  fuzz::require(again.has_value(), "what was parsed can be parsed again");
  fuzz::require(*again == *parsed && again->dump() == dumped, "and is the same");
  if (parsed->is_string()) {
    std::string written;
    api::append_string(written, parsed->get_ref<const std::string&>());
    const auto string = api::parse_json(written);
    fuzz::require(string && *string == *parsed, "a string is read back as it was written");
  }
  return 0;
}
