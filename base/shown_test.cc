#include "base/shown.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(Shown, WhatIsReadStaysAndWhatActsIsShown) {
  EXPECT_EQ(shown("alice@10.0.0.9: a\\b"), "alice@10.0.0.9: a\\b");
  EXPECT_EQ(shown("Zo\u00eb \u2713 \U0001f600"), "Zo\u00eb \u2713 \U0001f600");
  EXPECT_EQ(shown("x\nerror: forged\r\t\x1b[2J\x7f"), "x\\x0aerror: forged\\x0d\\x09\\x1b[2J\\x7f");
  EXPECT_EQ(shown(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(shown(""), "");
}

TEST(Shown, WhatTurnsTextOrEndsALineIsShown) {
  EXPECT_EQ(shown("a\u202eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(shown("\u2066\u2069\u200e\u061c\u2028"),
            "\\xe2\\x81\\xa6\\xe2\\x81\\xa9\\xe2\\x80\\x8e\\xd8\\x9c\\xe2\\x80\\xa8");
  EXPECT_EQ(shown("\u2026 \u200d \u2070"), "\u2026 \u200d \u2070");
}

TEST(Shown, WhatIsNoUtf8IsShownByteByByte) {
  EXPECT_EQ(shown("\xc2\x9b"), "\\xc2\\x9b") << "a C1 control, which starts a sequence";
  EXPECT_EQ(shown("\xff\xe2\x82"), "\\xff\\xe2\\x82") << "half a character";
  EXPECT_EQ(shown("\xc0\x8a"), "\\xc0\\x8a") << "an overlong line end";
  EXPECT_EQ(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(shown("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
}

}  // namespace
}  // namespace hvd
