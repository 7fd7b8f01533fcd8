// SPDX-License-Identifier: MIT
//
// A case: one collective as all ranks know it, from which each rank derives its own part: sizes,
// numbers, and what must come out. Pure functions of the case.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ciuic/abi/communicator.h>
#include <ciuic/view.hpp>

namespace ciuic::testing::communicator {

inline constexpr ciuic_dtype kF8E4M3{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1};
inline constexpr ciuic_dtype kF8E5M2{CIUIC_DTYPE_FLOAT8_E5M2, 8, 1};

/// Types that are reduced, and all that are moved.
inline const std::vector<ciuic_dtype> kNumberTypes{kF32, kF64, kF16, kBF16, kI32, kI64, kU8};
inline const std::vector<ciuic_dtype> kMovedTypes{kF32, kF64, kF16,    kBF16,  kI32,
                                                  kI64, kU8,  kF8E4M3, kF8E5M2};
/// Around nothing, around 128 and around 1024: where chunks and vectors end.
inline const std::vector<int64_t> kCounts{0, 1, 2, 3, 7, 127, 128, 129, 1023, 1024, 1025};
inline constexpr int64_t kBigCount = (int64_t{1} << 20) + 1;

enum class Numbers {
  Ordinary,   // small numbers of both signs
  Scattered,  // of very different magnitude: any other order of a sum has other bits
  Special     // NaN and infinities among them
};

/// How the parts of an uneven form lie in the buffer.
enum class Spread {
  Even,      // no counts
  Packed,    // counts alone
  Gaps,      // counts and offsets, with elements between the parts
  Reversed,  // counts and offsets, the last rank's part first
};

struct Case {
  uint32_t op = 0;
  uint32_t reduce = 0;
  ciuic_dtype dtype = kF32;
  int64_t count = 0;  // n of the contract's table; of uneven forms: of a part in the middle
  int32_t root = 0;
  bool in_place = false;
  Spread spread = Spread::Even;
  int shift = 0;  // elements before the tensor's first
  int shape = 0;  // which of the shapes with that many elements
  uint32_t flags = 0;
  double factor = 0;
  Numbers numbers = Numbers::Ordinary;
  uint64_t salt = 0;
};

/// "all_reduce avg bf16, 129 elements, world 3, in place".
std::string describe(const Case& c, int world);
const char* op_name(uint32_t op);
const char* reduce_name(uint32_t reduce);

bool is_reducing(uint32_t op);
bool is_float(ciuic_dtype dtype);
bool is_16_bit_float(ciuic_dtype dtype);

/// Elements of a buffer that belong to one group rank.
struct Part {
  int64_t offset;
  int64_t count;
};

/// One rank's buffers. Parts are those of the header's counts and offsets; one for the whole where
/// the op has none.
struct Layout {
  bool has_in = false;
  bool has_out = false;
  int64_t in_elements = 0;
  int64_t out_elements = 0;
  std::vector<Part> in, out;  // by group rank; empty where the op does not cut the buffer
};
Layout layout_of(const Case& c, int rank, int world);

/// Which elements of which inputs an output is made of.
struct Piece {
  int from;  // a rank, or kAll: reduced over all ranks
  int64_t in_offset, out_offset, count;
};
inline constexpr int kAll = -1;
std::vector<Piece> pieces_of(const Case& c, int rank, int world);

/// Mixes numbers into bits that look random.
inline uint64_t mix(uint64_t a, uint64_t b = 0) {
  uint64_t z = a * 0x9E3779B97F4A7C15ULL + b + 0x632BE59BD9B4E019ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace ciuic::testing::communicator
