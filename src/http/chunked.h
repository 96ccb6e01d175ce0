#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace::http {

/// The chunked transfer coding (RFC 9112 section 7.1), decoded byte by byte without a buffer. Strict where the RFC lets
/// a recipient be lax, since leniency about line ends and sizes is how requests are smuggled. Extensions and trailers
/// are passed over; together they may have kMaxOverhead bytes. (Beast's own decoder aborts the process when an empty
/// body's last chunk comes in two pieces, where assertions are on.)
class ChunkedDecoder {
 public:
  static constexpr size_t kMaxOverhead = 8 * 1024;

  struct Step {
    size_t used = 0;
    std::string_view data;        ///< of the body, within the bytes given
    const char* fault = nullptr;  ///< what is wrong; then the decoder is of no more use
  };
  /// Takes bytes up to the end of the next piece of data, or all. Call again with the rest until done() or used up.
  Step step(std::string_view bytes);

  /// Declared by the current chunk and not yet seen; 0 until its size has been read to the end of the line, so that no
  /// verdict depends on where the bytes were cut.
  uint64_t chunk_left() const { return state_ == State::kData ? left_ : 0; }
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State {
    kFirstDigit,
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailer,
    kTrailerLine,
    kTrailerLf,
    kEndLf,
    kDone
  };
  const char* take(char c);
  const char* take_size(char c);
  const char* count_overhead();

  State state_ = State::kFirstDigit;
  uint64_t left_ = 0;
  int digits_ = 0;
  size_t overhead_ = 0;
};

}  // namespace millrace::http
