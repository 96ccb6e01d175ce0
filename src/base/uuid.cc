#include "base/uuid.h"

#include <sys/random.h>

#include "base/bytes.h"
#include "base/result.h"

namespace millrace {

Uuid Uuid::random() {
  Uuid id;
  MILLRACE_ASSERT(::getrandom(id.bytes.data(), id.bytes.size(), 0) == static_cast<ssize_t>(id.bytes.size()),
                  "getrandom gave fewer bytes than asked");
  id.bytes[6] = static_cast<uint8_t>((id.bytes[6] & 0x0f) | 0x40);
  id.bytes[8] = static_cast<uint8_t>((id.bytes[8] & 0x3f) | 0x80);
  return id;
}

std::string Uuid::to_string() const {
  std::string hex = to_hex(view());
  for (size_t at : {8, 13, 18, 23}) hex.insert(at, 1, '-');
  return hex;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  Uuid id;
  size_t nibble = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-') return std::nullopt;
      continue;
    }
    int value;
    if (c >= '0' && c <= '9') value = c - '0';
    else if (c >= 'a' && c <= 'f') value = c - 'a' + 10;
    else if (c >= 'A' && c <= 'F') value = c - 'A' + 10;
    else return std::nullopt;
    auto& byte = id.bytes[nibble / 2];
    byte = static_cast<uint8_t>(nibble % 2 == 0 ? value << 4 : byte | value);
    ++nibble;
  }
  return id;
}

}  // namespace millrace
