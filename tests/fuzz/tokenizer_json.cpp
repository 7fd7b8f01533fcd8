// SPDX-License-Identifier: MIT
//
// A tokenizer.json of any bytes: refused with its key, or a tokenizer whose tokens write the text
// again, whole and in chunks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/tokenizer.h"
#include "core/log/failure.h"
#include "expect.h"

using ciuic::core::Encoder;
using ciuic::core::Failure;
using ciuic::core::Tokenizer;

namespace {

constexpr std::string_view kText =
    "And the earth was 12345, \xe6\xbc\xa2\xe5\xad\x97 <|x|>\n\n  it's \xc3\xa9 void.";

void try_out(const Tokenizer& tokenizer) {
  if (!tokenizer.can_restart()) {
    return;  // it may take text away
  }
  Encoder encoder(tokenizer);
  std::vector<int32_t> whole;
  encoder.encode(kText, whole);
  expect(tokenizer.decode(whole) == kText, "the text does not come back");
  std::vector<int32_t> pieces;
  for (size_t at = 0; at < kText.size();) {
    at = encoder.encode_chunk(kText, at, std::min(kText.size(), at + 7), pieces);
  }
  expect(pieces == whole, "chunks have other tokens");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    try_out(Tokenizer::parse({reinterpret_cast<const char*>(data), size}, "tokenizer.json"));
  } catch (const Failure& failure) {
    expect(std::string_view(failure.what()).starts_with("tokenizer.json") ||
               std::string_view(failure.what()).starts_with("a regular expression"),
           "a failure does not name the file");
  }
  return 0;
}
