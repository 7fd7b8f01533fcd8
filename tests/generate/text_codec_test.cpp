// SPDX-License-Identifier: MIT
#include "core/generate/text_codec.h"

#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

TEST(TextCodec, BytesComeBack) {
  const auto codec = text_codec({}, "model");
  std::string all;
  for (int c = 0; c < 256; ++c) {
    all += static_cast<char>(c);
  }
  std::string back;
  for (const int64_t token : codec->encode(all)) {
    back += codec->decode(token);
  }
  EXPECT_EQ(back, all);
  EXPECT_EQ(codec->decode(257), "");
}

TEST(TextCodec, GeneratesTextAndItsEnd) {
  EXPECT_EQ(text_codec({}, "model")->candidates().size(), 257U);
  EXPECT_EQ(
      text_codec({.vocab_size = 256, .bos = -1, .eos = -1, .pad = -1}, "m")->candidates().size(),
      256U);
  // DeepSeek's configurations number eos as a byte: it ends a text and is not counted twice.
  EXPECT_EQ(
      text_codec({.vocab_size = 300, .bos = 0, .eos = 1, .pad = -1}, "m")->candidates().size(),
      256U);
}

TEST(TextCodec, AContextBeginsWithBosOrASpace) {
  EXPECT_EQ(text_codec({}, "model")->first_token(), 256);
  EXPECT_EQ(text_codec({.bos = -1}, "model")->first_token(), ' ');
}

TEST(TextCodec, RefusesASmallVocabulary) {
  EXPECT_THROW(text_codec({.vocab_size = 255}, "model"), Failure);
}

}  // namespace
}  // namespace ciuic::core
