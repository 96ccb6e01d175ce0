#include "store/wal_tail.h"

#include <fstream>
#include <sstream>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/fuzz/target.h"
#include "tests/support/temp_dir.h"

/// A write-ahead log as a crash or damage may have left it: the first byte of the input says what the witness vouches
/// for, the rest is the file.
namespace millrace::fuzz {

namespace {

enum Type : char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

template <typename T>
void append_le(Bytes& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Bytes fragment(Type type, const Bytes& payload) {
  const uint32_t crc = crc32c(payload, crc32c(std::string(1, type)));
  Bytes out;
  append_le(out, (crc >> 15 | crc << 17) + 0xa282ead8u);
  append_le(out, static_cast<uint16_t>(payload.size()));
  out += type;
  return out + payload;
}

Bytes write_of(uint64_t sequence, uint32_t rows, size_t bytes) {
  Bytes out;
  append_le(out, sequence);
  append_le(out, rows);
  return out + Bytes(bytes, 'w');
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

}  // namespace

std::vector<std::string> seed_inputs() {
  const Bytes whole = fragment(kFull, write_of(1, 2, 20)) + fragment(kFull, write_of(3, 1, 5));
  const Bytes large = write_of(4, 1, 100);
  return {std::string(1, '\3') + whole + Bytes(200, '\0'),
          std::string(1, '\0') + whole + fragment(kFirst, large.substr(0, 40)) +
              fragment(kMiddle, large.substr(40, 40)) + fragment(kLast, large.substr(80)) + Bytes(50, '\0'),
          std::string(1, '\4') + whole + fragment(kFull, write_of(4, 1, 9)).substr(0, 12) + Bytes(9, '\0') +
              fragment(kFull, write_of(5, 1, 3))};
}

std::vector<std::string> dictionary() {
  return {fragment(kFull, write_of(6, 1, 1)), fragment(kFirst, write_of(7, 3, 8)), fragment(kLast, "x"),
          Bytes(16, '\0')};
}

}  // namespace millrace::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  using namespace millrace::fuzz;
  if (size == 0) return 0;
  static const tests::TempDir folder;
  const std::filesystem::path path = folder.path() / "000001.log";
  const std::string content(text_of(data, size).substr(1));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;

  const auto tails = store::read_wal_tails(folder.path(), data[0]);
  require(tails && tails->size() == 1, "the log is read");
  const store::WalTail& tail = tails->front();
  require(tail.size == content.size() && tail.end <= tail.size, "its end is within it");
  require(tail.end + tail.torn_bytes <= tail.size, "and so is what is torn");
  require(content.find_first_not_of('\0', tail.end + tail.torn_bytes) == std::string::npos, "behind it are zeros");
  require(store::cut_off(tail).has_value(), "it can be cut off");
  const std::string left = content_of(path);
  if (!tail.damage.empty()) {
    require(tail.torn_bytes > 0, "damage has a place");
    require(left == content, "a damaged log is left alone");
    return 0;
  }
  require(left == content.substr(0, tail.end), "what is whole is kept");
  const auto again = store::read_wal_tails(folder.path(), data[0]);
  require(again && again->front().end == tail.end && again->front().torn_bytes == 0, "and reads the same again");
  require(again->front().last_sequence == tail.last_sequence, "to the same row");
  return 0;
}
