#include "http/chunked.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace millrace::http {
namespace {

struct Decoded {
  std::string data, rest, fault;
  bool done = false;
};

// `piece` bytes at a time; 0: in pieces of random size.
Decoded decode(const std::string& bytes, size_t piece, std::mt19937_64* random = nullptr) {
  ChunkedDecoder decoder;
  Decoded out;
  size_t at = 0;
  while (at < bytes.size() && !decoder.done()) {
    size_t size = random != nullptr ? 1 + (*random)() % 7 : piece;
    std::string_view given = std::string_view(bytes).substr(at, size);
    while (!given.empty() && !decoder.done()) {
      auto step = decoder.step(given);
      if (step.fault != nullptr) {
        out.fault = step.fault;
        return out;
      }
      out.data += step.data;
      given.remove_prefix(step.used);
      at += step.used;
    }
  }
  out.done = decoder.done();
  out.rest = bytes.substr(at);
  return out;
}

TEST(Chunked, DecodesWhateverTheCuts) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::string next = "GET / HTTP/1.1\r\n\r\n";
  for (int round = 0; round < 500; ++round) {
    std::string body, coded;
    for (size_t chunks = random() % 5; chunks > 0; --chunks) {
      std::string data(1 + random() % 40, static_cast<char>('a' + random() % 26));
      char size[32];
      std::snprintf(size, sizeof size, random() % 2 ? "%zx" : "%04zX", data.size());
      coded += std::string(size) + (random() % 3 ? "" : " ;ext=\"\\\"x\"") + "\r\n" + data + "\r\n";
      body += data;
    }
    coded += random() % 2 ? "0\r\n\r\n" : "000\r\nTrailer: x\r\nHost: y\r\n\r\n";
    Decoded out = decode(coded + next, 0, &random);
    EXPECT_EQ(out.fault, "");
    EXPECT_TRUE(out.done);
    EXPECT_EQ(out.data, body);
    EXPECT_EQ(out.rest, next);
    EXPECT_EQ(decode(coded + next, 1).data, body);
    EXPECT_EQ(decode(coded + next, 100'000).rest, next);
    EXPECT_FALSE(decode(coded.substr(0, coded.size() - 1), 3).done);
  }
}

TEST(Chunked, RefusesWhatIsMalformed) {
  for (const char* bad : {"\r\n",
                          "x\r\n",
                          "-1\r\nx\r\n",
                          "+1\r\nx\r\n",
                          "0x1\r\nx\r\n",
                          " 1\r\nx\r\n",
                          "1\nx\r\n",
                          "1\r\rx",
                          "1\rx",
                          "1\r\nxy\r\n",
                          "1\r\nx\n",
                          "1\r\nx\r\r",
                          "1;a\nb\r\n",
                          "1;a\x01\r\n",
                          "0\r\n\n",
                          "0\r\n\r\r",
                          "0\r\nA: b\n\r\n",
                          "0\r\nA: \x01\r\n\r\n",
                          "1000000000000000\r\n",
                          "0000000000000001\r\nx\r\n"})
    for (size_t piece : {1, 100}) EXPECT_NE(decode(bad, piece).fault, "") << bad;
}

TEST(Chunked, BoundsExtensionsAndTrailersTogether) {
  std::string long_extension = "1;" + std::string(ChunkedDecoder::kMaxOverhead, 'a');
  EXPECT_NE(decode(long_extension, 100).fault, "");
  std::string many;
  for (int i = 0; i < 300; ++i) many += "1;" + std::string(30, 'a') + "\r\nx\r\n";
  EXPECT_NE(decode(many, 100).fault, "");
  EXPECT_NE(decode("0\r\n" + std::string(ChunkedDecoder::kMaxOverhead + 1, 'a'), 100).fault, "");
}

TEST(Chunked, KnowsWhatAChunkDeclares) {
  ChunkedDecoder decoder;
  auto step = decoder.step("ffffffffff\r\nab");
  EXPECT_EQ(step.data, "ab");
  EXPECT_EQ(decoder.chunk_left(), 0xffffffffffull - 2);
}

// Cut within the size line, what has been read of it may be the beginning of a size that is too long to be one.
TEST(Chunked, DeclaresNothingBeforeTheEndOfTheSizeLine) {
  ChunkedDecoder decoder;
  for (std::string_view piece : {"fff", "ffff", ";a", "=b", "\r"}) {
    EXPECT_EQ(decoder.step(piece).used, piece.size());
    EXPECT_EQ(decoder.chunk_left(), 0u) << "after " << piece;
  }
  EXPECT_EQ(decoder.step("\n").fault, nullptr);
  EXPECT_EQ(decoder.chunk_left(), 0xfffffffull);
}

}  // namespace
}  // namespace millrace::http
