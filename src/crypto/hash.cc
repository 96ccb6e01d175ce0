#include "crypto/hash.h"

#include <sodium.h>

namespace millrace::crypto {

Bytes digest_of(std::initializer_list<ByteView> parts) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, kDigestBytes);
  auto update = [&](ByteView bytes) {
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  };
  for (ByteView part : parts) {
    Bytes length;
    append_be(length, static_cast<uint64_t>(part.size()));
    update(length);
    update(part);
  }
  Bytes digest(kDigestBytes, '\0');
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(digest.data()), digest.size());
  return digest;
}

}  // namespace millrace::crypto
