#include "base/utf8.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Utf8, TakesTheEdgesOfEveryLength) {
  for (std::string_view text : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                                "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(text)) << text.size();
  EXPECT_EQ(utf8_sequence("\xf0\x90\x80\x80zz"), 4u);
}

TEST(Utf8, RefusesOverlongSurrogateTooLargeAndCutOff) {
  for (std::string_view text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "\xe2\x82z", "a\xc3"})
    EXPECT_FALSE(is_utf8(text)) << text.size();
}

}  // namespace
}  // namespace millrace
