#include <gtest/gtest.h>

#include "crypto/base64.h"
#include "crypto/hash.h"

namespace millrace::crypto {
namespace {

TEST(Base64, IsThatOfTheStandard) {
  // RFC 4648, section 10.
  const std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  EXPECT_EQ(to_base64("\xff\xfe\xfd"), "//79");
  for (const char* wrong : {"Zg", "Zg=", "Z===", "Zm9v!A==", "Zg==Zg==", "Zh==", "Zg==\n", "-_=="})
    EXPECT_EQ(from_base64(wrong), std::nullopt) << wrong;
}

TEST(Hash, PartsDoNotRunTogether) {
  EXPECT_EQ(digest_of({"ab", "c"}).size(), kDigestBytes);
  EXPECT_NE(digest_of({"ab", "c"}), digest_of({"a", "bc"}));
  EXPECT_EQ(digest_of({"a"}), digest_of({"a"}));
}

}  // namespace
}  // namespace millrace::crypto
