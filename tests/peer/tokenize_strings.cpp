// SPDX-License-Identifier: MIT
//
// tokenize_strings TOKENIZER INPUT OUTPUT
//
// For tokenizer_parity.py: INPUT holds strings, OUTPUT gets the tokens of each, both as an int32
// count and then bytes or int32 ids. Each string's tokens must decode to it, and be the same when
// it is encoded in chunks. Prints the seconds that encoding alone took.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "core/data/tokenizer/tokenizer.h"

namespace {

using ciuic::core::Encoder;
using ciuic::core::Tokenizer;

std::vector<std::string> read_strings(const char* file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<std::string> strings;
  int32_t size = 0;
  while (in.read(reinterpret_cast<char*>(&size), sizeof(size))) {
    std::string& s = strings.emplace_back(static_cast<size_t>(size), '\0');
    in.read(s.data(), size);
  }
  return strings;
}

/// In chunks of about a third, each from where the one before ended: as several threads do it.
std::vector<int32_t> in_chunks(Encoder& encoder, const std::string& text) {
  std::vector<int32_t> out;
  const size_t third = text.size() / 3 + 1;
  for (size_t at = 0; at < text.size();) {
    at = encoder.encode_chunk(text, at, std::min(text.size(), at + third), out);
  }
  return out;
}

int compare(const Tokenizer& tokenizer, const std::vector<std::string>& strings,
            const char* output) {
  Encoder encoder(tokenizer);
  std::vector<std::vector<int32_t>> all(strings.size());
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < strings.size(); ++i) {
    encoder.encode(strings[i], all[i]);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::ofstream out(output, std::ios::binary);
  for (size_t i = 0; i < strings.size(); ++i) {
    const auto count = static_cast<int32_t>(all[i].size());
    out.write(reinterpret_cast<const char*>(&count), sizeof(count));
    out.write(reinterpret_cast<const char*>(all[i].data()), count * 4);
    if (tokenizer.decode(all[i]) != strings[i]) {
      std::fprintf(stderr, "string %zu does not come back\n", i);
      return 1;
    }
    if (tokenizer.can_restart() && in_chunks(encoder, strings[i]) != all[i]) {
      std::fprintf(stderr, "string %zu has other tokens in chunks\n", i);
      return 1;
    }
  }
  std::printf("%.6f\n", seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: tokenize_strings TOKENIZER INPUT OUTPUT\n");
    return 2;
  }
  try {
    return compare(Tokenizer::open(argv[1]), read_strings(argv[2]), argv[3]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
