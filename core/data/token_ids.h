// SPDX-License-Identifier: MIT
//
// What data needs to know of the model.
#pragma once

#include <cstdint>

namespace ciuic::core {

/// -1: the model has none.
struct TokenIds {
  int64_t vocab_size = 259;
  int64_t bos = 256;
  int64_t eos = 257;
  int64_t pad = 258;
};

}  // namespace ciuic::core
