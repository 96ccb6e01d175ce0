#include "cli/base64.h"

#include <array>
#include <cstdint>

namespace millrace::cli {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 64;

constexpr std::array<uint8_t, 256> reverse_alphabet() {
  std::array<uint8_t, 256> table{};
  table.fill(kNone);
  for (size_t i = 0; i < kAlphabet.size(); ++i) table[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  return table;
}
constexpr auto kReverse = reverse_alphabet();

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    size_t here = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < here ? static_cast<uint8_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) out += i <= here ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    size_t digits = at + 4 == text.size() ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      uint8_t digit = i < digits ? kReverse[static_cast<uint8_t>(text[at + i])] : 0;
      if (digit == kNone) return std::nullopt;
      group = group << 6 | digit;
    }
    for (size_t i = 0; i + 1 < digits; ++i) out += static_cast<char>(group >> (16 - 8 * i) & 255);
  }
  return out;
}

}  // namespace millrace::cli
