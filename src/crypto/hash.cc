#include "crypto/hash.h"

#include <sodium.h>

namespace millrace::crypto {
namespace {

crypto_hash_sha256_state* state_in(unsigned char* place) {
  return reinterpret_cast<crypto_hash_sha256_state*>(place);
}

}  // namespace

Sha256::Sha256() {
  static_assert(sizeof(crypto_hash_sha256_state) <= sizeof state_);
  crypto_hash_sha256_init(state_in(state_));
}

void Sha256::update(ByteView bytes) {
  crypto_hash_sha256_update(state_in(state_), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

Bytes Sha256::finish() {
  Bytes digest(crypto_hash_sha256_BYTES, '\0');
  crypto_hash_sha256_final(state_in(state_), reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

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
