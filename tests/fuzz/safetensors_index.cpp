// SPDX-License-Identifier: MIT
//
// model.safetensors.index.json, of any text: refused as damaged, or a map to plain names of files;
// written and read again, the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <ciuic/error.hpp>

#include "expect.h"
#include "plugins/checkpoint/safetensors/split_index.h"

namespace st = ciuic::plugins::safetensors;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const st::WeightMap map = st::parse_split_index(text, "index");
    for (const auto& [tensor, file] : map) {
      expect(!file.empty() && file != "." && file != ".." && file.find('/') == std::string::npos &&
                 file.find('\0') == std::string::npos,
             "a file outside the folder");
    }
    expect(st::parse_split_index(st::make_split_index(map, size), "again") == map,
           "another map after writing and reading");
  } catch (const ciuic::Error& e) {
    expect(e.code() == CIUIC_DATA_LOSS, "refused as something else than damaged");
  }
  return 0;
}
