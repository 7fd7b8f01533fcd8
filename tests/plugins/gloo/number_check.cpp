// SPDX-License-Identifier: MIT
#include "number_check.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include <ciuic/testing/numbers.hpp>

namespace ciuic::tests {
namespace {

/// f16 by its definition, slowly; the other types as everywhere in the tests.
double load_element(ciuic_dtype dtype, const void* at) {
  if (!same(dtype, kF16)) {
    return testing::load_element(dtype, at);
  }
  const auto bits = testing::read_as<uint16_t>(at);
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

void store_element(ciuic_dtype dtype, void* at, double value) {
  if (!same(dtype, kF16)) {
    return testing::store_element(dtype, at, value);
  }
  int bits = 0x7E00;
  if (!std::isnan(value)) {
    const double size = std::abs(value);
    const int exponent = size < std::ldexp(1, -14) ? -14 : std::ilogb(size);
    const double mantissa =
        std::nearbyint(std::ldexp(size, 10 - exponent));  // may carry into the exponent
    bits = std::isinf(value) || exponent > 15
               ? 0x7C00
               : ((exponent + 14) << 10) + static_cast<int>(mantissa);
    bits |= std::signbit(value) ? 0x8000 : 0;
  }
  testing::write_as(at, static_cast<uint16_t>(bits));
}

struct Case {
  uint32_t op, reduce, flags;
  ciuic_dtype dtype;
  int64_t n;
  bool in_place;
};

/// What rank r contributes at position i of its input: small numbers, so that integers do not
/// overflow and products stay finite, with fractions for floats.
double input(const Case& c, int rank, int64_t i) {
  const uint64_t hash =
      (static_cast<uint64_t>(i) * 2654435761U + static_cast<uint64_t>(rank) * 40503U) >> 7;
  const bool is_float = c.dtype.code != CIUIC_DTYPE_INT && c.dtype.code != CIUIC_DTYPE_UINT;
  if (c.reduce == CIUIC_REDUCE_PROD) {
    return static_cast<double>(1 + hash % 3);
  }
  return is_float ? static_cast<double>(hash % 61) / 8.0 - 3.0 : static_cast<double>(hash % 40);
}

double combine(uint32_t reduce, double a, double b) {
  switch (reduce) {
    case CIUIC_REDUCE_MIN:
      return std::min(a, b);
    case CIUIC_REDUCE_MAX:
      return std::max(a, b);
    case CIUIC_REDUCE_PROD:
      return a * b;
    case CIUIC_REDUCE_OR:
      return static_cast<double>(static_cast<int64_t>(a) | static_cast<int64_t>(b));
    case CIUIC_REDUCE_AND:
      return static_cast<double>(static_cast<int64_t>(a) & static_cast<int64_t>(b));
    default:
      return a + b;
  }
}

double reduced(const Case& c, int world, int64_t i) {
  double sum = input(c, 0, i);
  for (int rank = 1; rank < world; ++rank) {
    sum = combine(c.reduce, sum, input(c, rank, i));
  }
  return c.reduce == CIUIC_REDUCE_AVG ? sum / world : sum;
}

/// Sums of the inputs above are exact in every type; an average is rounded once.
double tolerance(const Case& c, double expected) {
  if (c.reduce != CIUIC_REDUCE_AVG) {
    return 0;
  }
  const double epsilon = c.dtype.bits == 64                   ? std::ldexp(1, -53)
                         : c.dtype.bits == 32                 ? std::ldexp(1, -24)
                         : c.dtype.code == CIUIC_DTYPE_BFLOAT ? std::ldexp(1, -8)
                                                              : std::ldexp(1, -11);
  return std::abs(expected) * epsilon;
}

class Runner {
 public:
  explicit Runner(const Communicator& g) : g_(g) {}

  void run(const Case& c) {
    const int world = g_.world();
    const int64_t width = dtype_bytes(c.dtype);
    const int64_t in_count = c.op == CIUIC_OP_REDUCE_SCATTER ? c.n * world : c.n;
    const int64_t out_count = c.op == CIUIC_OP_ALL_GATHER ? c.n * world : c.n;
    std::vector<char> whole(static_cast<size_t>((in_count + out_count) * width) + 16, '\x55');
    char* in = whole.data();
    char* out = in + in_count * width;
    const int64_t own = g_.rank() * c.n * width;
    if (c.in_place && c.op == CIUIC_OP_ALL_GATHER) {
      in = out + own;
    } else if (c.in_place && c.op == CIUIC_OP_REDUCE_SCATTER) {
      out = in + own;
    } else if (c.in_place) {
      out = in;
    }
    if (c.op == CIUIC_OP_BROADCAST) {
      in = out;
    }
    for (int64_t i = 0; i < in_count; ++i) {
      store_element(c.dtype, in + i * width, input(c, g_.rank(), i));
    }
    Call call{Tensor(in, c.dtype, {in_count}), Tensor(out, c.dtype, {out_count}), {}};
    call.c.op = c.op;
    call.c.reduce = c.reduce;
    call.c.flags = c.flags;
    call.c.peer = root(c);
    call.c.sequence = static_cast<uint64_t>(++count_);
    g_.run(std::move(call));
    if (c.op == CIUIC_OP_REDUCE && g_.rank() != root(c)) {
      return;
    }
    for (int64_t i = 0; i < out_count; ++i) {
      const double got = load_element(c.dtype, out + i * width);
      const double want = expected(c, i);
      if (!(std::abs(got - want) <= tolerance(c, want))) {
        std::ostringstream text;
        text << "op " << c.op << " reduce " << c.reduce << " " << dtype_name(c.dtype) << " n "
             << c.n << " in place " << c.in_place << " flags " << c.flags << ": element " << i
             << " is " << got << ", expected " << want;
        throw std::runtime_error(text.str());
      }
    }
    if (c.op != CIUIC_OP_REDUCE_SCATTER && c.op != CIUIC_OP_REDUCE) {
      add_to_hash(out, out_count * width);
    }
  }

  void add_to_hash(const char* bytes, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      hash_ = (hash_ ^ static_cast<unsigned char>(bytes[i])) * 1099511628211U;
    }
  }
  [[nodiscard]] uint64_t hash() const { return hash_; }

 private:
  [[nodiscard]] int root(const Case& c) const { return static_cast<int>(c.n % g_.world()); }
  [[nodiscard]] double expected(const Case& c, int64_t i) const {
    switch (c.op) {
      case CIUIC_OP_ALL_GATHER:
        return input(c, static_cast<int>(i / c.n), i % c.n);
      case CIUIC_OP_BROADCAST:
        return input(c, root(c), i);
      case CIUIC_OP_REDUCE_SCATTER:
        return reduced(c, g_.world(), g_.rank() * c.n + i);
      default:
        return reduced(c, g_.world(), i);
    }
  }

  const Communicator& g_;
  int64_t count_ = 0;
  uint64_t hash_ = 14695981039346656037U;
};

/// Random-looking sums, whose rounding depends on the order: equal bits on all ranks and in every
/// run are asked of them too.
void add_inexact(const Communicator& g, Runner& runner) {
  for (const int64_t n : {int64_t{5}, int64_t{1025}, int64_t{100003}}) {
    std::vector<float> x(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      x[static_cast<size_t>(i)] =
          std::sin(static_cast<float>(i * (g.rank() + 3))) * 1e3F / static_cast<float>(i + 1);
    }
    g.run(all_reduce(x.data(), x.data(), kF32, n));
    runner.add_to_hash(reinterpret_cast<const char*>(x.data()), n * 4);
  }
}

}  // namespace

uint64_t check_numbers(const Communicator& communicator) {
  Runner runner(communicator);
  for (const ciuic_dtype dtype : {kF32, kF64, kF16, kBF16, kI32, kI64, kU8}) {
    for (const int64_t n : {0, 1, 2, 3, 127, 1025, 100003}) {
      for (const bool in_place : {false, true}) {
        for (const uint32_t op : {CIUIC_OP_ALL_REDUCE, CIUIC_OP_REDUCE, CIUIC_OP_REDUCE_SCATTER}) {
          for (uint32_t reduce = CIUIC_REDUCE_SUM; reduce <= CIUIC_REDUCE_AND; ++reduce) {
            if (communicator.capabilities(op, reduce, dtype) != 0) {
              runner.run({op, reduce, 0, dtype, n, in_place});
            }
          }
          runner.run({op, CIUIC_REDUCE_SUM, CIUIC_COLLECTIVE_TREE, dtype, n, in_place});
        }
        runner.run({CIUIC_OP_ALL_GATHER, 0, 0, dtype, n, in_place});
        runner.run({CIUIC_OP_BROADCAST, 0, 0, dtype, n, in_place});
      }
    }
  }
  add_inexact(communicator, runner);
  return runner.hash();
}

void check_special_values(const Communicator& communicator) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const ciuic_dtype dtype : {kF32, kF64, kF16, kBF16}) {
    for (const int64_t n : {int64_t{4}, int64_t{50000}}) {
      for (const uint32_t reduce : {CIUIC_REDUCE_SUM, CIUIC_REDUCE_AVG, CIUIC_REDUCE_MIN,
                                    CIUIC_REDUCE_MAX, CIUIC_REDUCE_PROD}) {
        const int64_t width = dtype_bytes(dtype);
        std::vector<char> x(static_cast<size_t>(n * width));
        const int last = communicator.world() - 1;
        for (int64_t i = 0; i < n; ++i) {
          // element 0: NaN on the last rank; 1: NaN on rank 0; 2: inf on the last; 3: -5 everywhere
          const bool at_last = communicator.rank() == last;
          const bool at_first = communicator.rank() == 0;
          const double special[4] = {at_last ? kNaN : 1, at_first ? kNaN : 1,
                                     at_last ? kInfinity : 1, -5};
          store_element(dtype, x.data() + i * width, special[i % 4]);
        }
        communicator.run(all_reduce(x.data(), x.data(), dtype, n, reduce));
        for (int64_t i = 0; i < n; ++i) {
          const double got = load_element(dtype, x.data() + i * width);
          const bool want_nan = i % 4 < 2;
          const bool right =
              want_nan     ? std::isnan(got)
              : i % 4 == 2 ? (reduce == CIUIC_REDUCE_MIN && last > 0 ? got == 1 : got == kInfinity)
                           : reduce == CIUIC_REDUCE_SUM || reduce == CIUIC_REDUCE_PROD || got == -5;
          if (!right) {
            throw std::runtime_error("special values: " + dtype_name(dtype) + " reduce " +
                                     std::to_string(reduce) + " n " + std::to_string(n) +
                                     " element " + std::to_string(i) + " is " +
                                     std::to_string(got));
          }
        }
      }
    }
  }
}

}  // namespace ciuic::tests
