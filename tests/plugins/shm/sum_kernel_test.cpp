// SPDX-License-Identifier: MIT
//
// The kernels against the plain way, bit for bit: both add in the order of one tree and round once.
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <ciuic/view.hpp>

#include "plugins/common/communicator/reduction.h"
#include "plugins/common/communicator/sum_parts.h"

namespace ciuic::plugins {
namespace {

/// Finite numbers of all sizes, as bits of the type.
std::vector<char> numbers(ciuic_dtype dtype, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    value = std::ldexp(static_cast<float>(random()) / 4e9F - 0.5F,
                       static_cast<int>(random() % 20) - 10);
  }
  std::vector<char> bytes(static_cast<size_t>(count * dtype_bytes(dtype)));
  if (same(dtype, kF32)) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    narrow(dtype, values.data(), bytes.data(), count);
  }
  return bytes;
}

TEST(SumKernel, HasTheBitsOfThePlainWay) {
  for (const ciuic_dtype dtype : {kF32, kBF16, kF16}) {
    for (size_t num_parts = 1; num_parts <= kMostPartsInVectors; ++num_parts) {
      for (const int64_t count : {0, 1, 15, 16, 17, 1000, 5001}) {
        std::vector<std::vector<char>> data;
        std::vector<const char*> parts;
        for (size_t p = 0; p < num_parts; ++p) {
          data.push_back(numbers(dtype, count, static_cast<uint32_t>(p * 100 + num_parts)));
          parts.push_back(data.back().data());
        }
        for (const uint32_t reduce : {CIUIC_REDUCE_SUM, CIUIC_REDUCE_AVG}) {
          std::vector<char> expected(data[0].size());
          reduce_parts_plainly(dtype, reduce, parts, count, expected.data());
          std::vector<char> first(data[0].size());
          std::vector<char> second(data[0].size());
          char* const outs[] = {first.data(), second.data()};
          reduce_parts(dtype, reduce, parts, count, outs);
          EXPECT_EQ(first, expected) << dtype_name(dtype) << " " << num_parts << " " << count;
          EXPECT_EQ(second, expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ciuic::plugins
