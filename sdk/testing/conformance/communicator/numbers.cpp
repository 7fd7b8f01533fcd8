// SPDX-License-Identifier: MIT
//
// Tolerances, with eps the distance from 1 to the next number of the type:
//   sum    (world - 1) * eps * sum|x|: any order of additions in the type itself
//   avg    eps/2 * |mean| (the one rounding) + (world - 1) * eps' * mean|x|, where eps' is f32's for
//          16-bit types: a true average needs a wider sum
//   prod   (world - 1) * eps * |product|
//   WIDE   as avg: one rounding of a sum in f32
// min, max, integers and bitwise: exact.
#include "numbers.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include <ciuic/testing/float16.hpp>
#include <ciuic/testing/numbers.hpp>

namespace ciuic::testing::communicator {
namespace {

using Wide = long double;

Wide decode(ciuic_dtype dtype, const char* at) {
  if (same(dtype, kF16)) {
    return f16_to_float(read_as<uint16_t>(at));
  }
  return same(dtype, kI64) ? static_cast<Wide>(read_as<int64_t>(at)) : load_element(dtype, at);
}

void encode(ciuic_dtype dtype, char* at, double value) {
  if (same(dtype, kF16)) {
    write_as(at, float_to_f16(static_cast<float>(value)));
  } else {
    store_element(dtype, at, value);
  }
}

double epsilon(ciuic_dtype dtype) {
  if (same(dtype, kF64)) {
    return 0x1p-52;
  }
  return same(dtype, kBF16) ? 0x1p-7 : same(dtype, kF16) ? 0x1p-10 : 0x1p-23;
}

/// A number with as many random bits as the type holds, of magnitude 2^-spread .. 2^spread.
double random_float(ciuic_dtype dtype, uint64_t bits, int spread) {
  const int digits = same(dtype, kF64) ? 53 : same(dtype, kF32) ? 24 : same(dtype, kF16) ? 11 : 8;
  const auto mantissa = static_cast<double>(bits >> 11 >> (53 - digits)) + std::ldexp(1, digits);
  const int exponent = static_cast<int>(bits % static_cast<uint64_t>(2 * spread + 1)) - spread;
  const double magnitude = std::ldexp(std::floor(mantissa / 2), exponent - digits + 1);
  return ((bits >> 8) & 1) != 0 ? magnitude : -magnitude;
}

/// Whole numbers whose sum over the ranks divides by world, and overflows no type.
double averaged_integer(const Case& c, int rank, int world, uint64_t i) {
  int64_t sum = 0;
  for (int r = 0; r + 1 < world; ++r) {
    const auto value = static_cast<int64_t>(mix(c.salt + i, static_cast<uint64_t>(r)) % 20);
    if (r == rank) {
      return static_cast<double>(value);
    }
    sum += value;
  }
  return static_cast<double>((world - sum % world) % world);
}

double integer_number(const Case& c, int rank, int world, uint64_t i) {
  const uint64_t bits = mix(c.salt + i, static_cast<uint64_t>(rank));
  const bool is_unsigned = same(c.dtype, kU8);
  if (c.reduce == CIUIC_REDUCE_AVG) {
    return averaged_integer(c, rank, world, i);
  }
  if (c.reduce == CIUIC_REDUCE_PROD) {  // one rank has a 1, so that 2^7 is the most
    const bool is_one =
        mix(c.salt + i, 99) % static_cast<uint64_t>(world) == static_cast<uint64_t>(rank);
    const double magnitude = is_one || bits % 2 == 0 ? 1 : 2;
    return is_unsigned || bits % 4 < 2 ? magnitude : -magnitude;
  }
  if (is_unsigned) {
    return static_cast<double>(bits % (c.reduce == CIUIC_REDUCE_SUM ? 32 : 256));
  }
  const int64_t range = same(c.dtype, kI64) ? int64_t{1} << 50 : int64_t{1} << 27;
  return static_cast<double>(static_cast<int64_t>(bits % static_cast<uint64_t>(2 * range)) - range);
}

double special(uint64_t bits, double otherwise) {
  switch (bits % 11) {
    case 0:
      return NAN;
    case 1:
    case 2:
      return INFINITY;
    case 3:
      return -INFINITY;
    default:
      return otherwise;
  }
}

double number(const Case& c, int rank, int world, uint64_t i) {
  if (!is_float(c.dtype)) {
    return integer_number(c, rank, world, i);
  }
  const uint64_t bits = mix(c.salt + i, static_cast<uint64_t>(rank));
  const int spread = c.reduce == CIUIC_REDUCE_PROD     ? 0
                     : c.numbers == Numbers::Scattered ? (same(c.dtype, kF16) ? 5 : 20)
                                                       : 3;
  const double ordinary = random_float(c.dtype, bits, spread);
  return c.numbers == Numbers::Special ? special(mix(bits), ordinary) : ordinary;
}

bool moves_bits(const Case& c) {
  return !is_reducing(c.op) || c.reduce == CIUIC_REDUCE_OR || c.reduce == CIUIC_REDUCE_AND;
}

struct Expected {
  Wide value = 0;
  Wide tolerance = 0;
};

Wide combine(uint32_t reduce, Wide a, Wide b) {
  switch (reduce) {
    case CIUIC_REDUCE_MIN:
      return std::isnan(a) || std::isnan(b) ? std::numeric_limits<Wide>::quiet_NaN()
                                            : std::fmin(a, b);
    case CIUIC_REDUCE_MAX:
      return std::isnan(a) || std::isnan(b) ? std::numeric_limits<Wide>::quiet_NaN()
                                            : std::fmax(a, b);
    case CIUIC_REDUCE_PROD:
      return a * b;
    default:
      return a + b;
  }
}

Expected reduced(const Case& c, const std::vector<std::vector<char>>& inputs, size_t at) {
  Expected e;
  Wide magnitude = 0;
  for (size_t r = 0; r < inputs.size(); ++r) {
    const Wide x = decode(c.dtype, inputs[r].data() + at) * (c.factor == 0 ? 1 : c.factor);
    e.value = r == 0 ? x : combine(c.reduce, e.value, x);
    magnitude += std::fabs(x);
  }
  if (c.reduce == CIUIC_REDUCE_AVG) {
    e.value /= static_cast<Wide>(inputs.size());
    magnitude /= static_cast<Wide>(inputs.size());
  }
  if (!is_float(c.dtype) || c.reduce == CIUIC_REDUCE_MIN || c.reduce == CIUIC_REDUCE_MAX) {
    return e;
  }
  const Wide steps = static_cast<Wide>(inputs.size()) - 1 + (c.factor == 0 ? 0 : 1);
  const Wide eps = epsilon(c.dtype);
  const bool is_rounded_once =
      c.reduce == CIUIC_REDUCE_AVG || (c.flags & CIUIC_COLLECTIVE_WIDE) != 0;
  if (is_rounded_once && inputs.size() > 1) {
    const Wide inner = is_16_bit_float(c.dtype) ? 0x1p-23L : eps;
    // 1.001: the bound of the rounding itself is relative to the rounded number
    e.tolerance = 0.5L * eps * std::fabs(e.value) * 1.001L + steps * inner * magnitude;
  } else {
    e.tolerance = steps * eps * (c.reduce == CIUIC_REDUCE_PROD ? std::fabs(e.value) : magnitude);
  }
  return e;
}

bool matches(Wide got, const Expected& e) {
  if (std::isnan(e.value)) {
    return std::isnan(got);
  }
  if (std::isinf(e.value)) {
    return got == e.value;
  }
  return std::fabs(got - e.value) <= e.tolerance;
}

std::string text_of(Wide value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.17Lg", value);
  return text;
}

std::string hex(const char* at, size_t size) {
  std::string text = "bytes";
  for (size_t i = 0; i < size; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof(byte), " %02x", static_cast<unsigned char>(at[i]));
    text += byte;
  }
  return text;
}

std::string difference(const Case& c, int rank, int world, int64_t element, const std::string& got,
                       const std::string& expected) {
  return describe(c, world) + ": rank " + std::to_string(rank) + ", element " +
         std::to_string(element) + " of its output: got " + got + ", expected " + expected;
}

/// Bitwise reductions, and moves, as bytes.
std::optional<std::string> compare_bits(const Case& c, int rank, int world, const Piece& piece,
                                        const std::vector<std::vector<char>>& inputs,
                                        const char* out) {
  const auto width = static_cast<size_t>(dtype_bytes(c.dtype));
  std::vector<char> expected(width);
  for (int64_t i = 0; i < piece.count; ++i) {
    const size_t at = static_cast<size_t>(piece.in_offset + i) * width;
    for (size_t b = 0; b < width; ++b) {
      expected[b] = inputs[static_cast<size_t>(piece.from == kAll ? 0 : piece.from)][at + b];
      for (size_t r = 1; r < inputs.size() && piece.from == kAll; ++r) {
        const char other = inputs[r][at + b];
        expected[b] = static_cast<char>(c.reduce == CIUIC_REDUCE_OR ? expected[b] | other
                                                                    : expected[b] & other);
      }
    }
    const char* got = out + static_cast<size_t>(piece.out_offset + i) * width;
    if (std::memcmp(got, expected.data(), width) != 0) {
      return difference(c, rank, world, piece.out_offset + i, hex(got, width),
                        hex(expected.data(), width));
    }
  }
  return std::nullopt;
}

std::optional<std::string> compare_numbers(const Case& c, int rank, int world, const Piece& piece,
                                           const std::vector<std::vector<char>>& inputs,
                                           const char* out) {
  const auto width = static_cast<size_t>(dtype_bytes(c.dtype));
  for (int64_t i = 0; i < piece.count; ++i) {
    const Expected e = reduced(c, inputs, static_cast<size_t>(piece.in_offset + i) * width);
    const Wide got = decode(c.dtype, out + static_cast<size_t>(piece.out_offset + i) * width);
    if (!matches(got, e)) {
      return difference(c, rank, world, piece.out_offset + i, text_of(got),
                        text_of(e.value) + " +- " + text_of(e.tolerance));
    }
  }
  return std::nullopt;
}

/// Only for buffers with gaps: the rest is covered by the pieces.
std::optional<std::string> find_touched_gap(const Case& c, int rank, int world,
                                            const std::vector<Piece>& pieces, const char* out,
                                            unsigned char fill) {
  const auto width = static_cast<size_t>(dtype_bytes(c.dtype));
  std::vector<bool> covered(static_cast<size_t>(layout_of(c, rank, world).out_elements));
  for (const Piece& piece : pieces) {
    for (int64_t i = 0; i < piece.count; ++i) {
      covered[static_cast<size_t>(piece.out_offset + i)] = true;
    }
  }
  for (size_t i = 0; i < covered.size(); ++i) {
    for (size_t b = 0; b < width && !covered[i]; ++b) {
      if (static_cast<unsigned char>(out[i * width + b]) != fill) {
        return difference(c, rank, world, static_cast<int64_t>(i), "a write between the parts",
                          "that gaps stay as they were");
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<char> input_of(const Case& c, int rank, int world) {
  const Layout layout = layout_of(c, rank, world);
  const auto n =
      static_cast<size_t>(c.op == CIUIC_OP_BROADCAST ? layout.out_elements : layout.in_elements);
  const auto width = static_cast<size_t>(dtype_bytes(c.dtype));
  std::vector<char> bytes(n * width);
  if (moves_bits(c)) {
    for (size_t at = 0; at < bytes.size(); at += 8) {
      const uint64_t word = mix(c.salt + at, static_cast<uint64_t>(rank) + 1);
      std::memcpy(bytes.data() + at, &word, bytes.size() - at < 8 ? bytes.size() - at : 8);
    }
    return bytes;
  }
  for (size_t i = 0; i < n; ++i) {
    encode(c.dtype, bytes.data() + i * width, number(c, rank, world, i));
  }
  return bytes;
}

std::optional<std::string> find_difference(const Case& c, int rank, int world, const char* out,
                                           unsigned char fill) {
  std::vector<std::vector<char>> inputs;
  for (int r = 0; r < world; ++r) {
    inputs.push_back(input_of(c, r, world));
  }
  const std::vector<Piece> pieces = pieces_of(c, rank, world);
  for (const Piece& piece : pieces) {
    const auto wrong = moves_bits(c) ? compare_bits(c, rank, world, piece, inputs, out)
                                     : compare_numbers(c, rank, world, piece, inputs, out);
    if (wrong) {
      return wrong;
    }
  }
  return c.spread == Spread::Gaps && !c.in_place
             ? find_touched_gap(c, rank, world, pieces, out, fill)
             : std::nullopt;
}

}  // namespace ciuic::testing::communicator
