#pragma once

#include <initializer_list>

#include "base/bytes.h"

namespace millrace::crypto {

inline constexpr size_t kDigestBytes = 32;

/// SHA-256 of a stream of bytes. One thread.
class Sha256 {
 public:
  Sha256();
  void update(ByteView bytes);
  /// Once.
  Bytes finish();

 private:
  alignas(8) unsigned char state_[128];
};

/// BLAKE2b-256 of the parts, each preceded by its length, so that no two lists of parts hash the same bytes.
/// Any thread.
Bytes digest_of(std::initializer_list<ByteView> parts);

}  // namespace millrace::crypto
