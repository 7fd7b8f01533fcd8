// SPDX-License-Identifier: MIT
//
// fp8_block's products against a plain emulation of the same recipe, bit for bit: numbers are
// rounded by the table of E4M3 (float_format.hpp), scaled by amax / 448 or the next power of two, and
// summed in fp32 in the recipe's order. And against the unquantised product in fp64, within what
// E4M3 can cost.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ciuic/testing/float_format.hpp>
#include <ciuic/testing/numbers.hpp>
#include <ciuic/testing/reference_threads.hpp>

#include "tests/plugins/plugins.h"

namespace ciuic::testing {
namespace {

constexpr int64_t kBlock = 128;

struct Array {
  int64_t rows, columns;
  std::vector<float> x;
  float& operator()(int64_t r, int64_t c) { return x[static_cast<size_t>(r * columns + c)]; }
  float operator()(int64_t r, int64_t c) const { return x[static_cast<size_t>(r * columns + c)]; }
  [[nodiscard]] Array transposed() const {
    Array t{columns, rows, std::vector<float>(x.size())};
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        t(c, r) = (*this)(r, c);
      }
    }
    return t;
  }
  [[nodiscard]] Array some_rows(int64_t begin, int64_t end) const {
    return {end - begin, columns, {x.begin() + begin * columns, x.begin() + end * columns}};
  }
};

/// bf16 numbers over several magnitudes.
Array random_array(int64_t rows, int64_t columns, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Array a{rows, columns, std::vector<float>(static_cast<size_t>(rows * columns))};
  const FloatFormat& bf16 = FloatFormat::of(kBF16);
  for (float& x : a.x) {
    const float wild = normal(random) * std::exp2(std::floor(2 * normal(random)));
    x = static_cast<float>(bf16.decode(bf16.encode(wild, false)));
  }
  return a;
}

/// What a product sees of an operand: E4M3 numbers, and the scale of each.
struct Cast {
  Array numbers, scales;
};

Cast cast(const Array& a, int64_t block_rows, int64_t block_columns, bool power_of_two) {
  const FloatFormat& e4m3 = FloatFormat::of(kE4M3);
  Cast out{a, a};
  for (int64_t r0 = 0; r0 < a.rows; r0 += block_rows) {
    for (int64_t c0 = 0; c0 < a.columns; c0 += block_columns) {
      const int64_t r1 = std::min(r0 + block_rows, a.rows);
      const int64_t c1 = std::min(c0 + block_columns, a.columns);
      float largest = 0;
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) {
          largest = std::max(largest, std::fabs(a(r, c)));
        }
      }
      float scale = largest == 0 ? 1 : largest / 448.0F;
      if (power_of_two) {
        scale = std::exp2(std::ceil(std::log2(scale)));
      }
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) {
          out.numbers(r, c) = static_cast<float>(e4m3.decode(e4m3.encode(a(r, c) / scale, true)));
          out.scales(r, c) = scale;
        }
      }
    }
  }
  return out;
}

/// A B in the recipe's order; A [m, k] and B [k, n] already turned as the pass wants them.
Array recipe(const Cast& a, const Cast& b) {
  Array out{a.numbers.rows, b.numbers.columns, {}};
  out.x.resize(static_cast<size_t>(out.rows * out.columns));
  for (int64_t i = 0; i < out.rows; ++i) {
    for (int64_t j = 0; j < out.columns; ++j) {
      float total = 0;
      for (int64_t k0 = 0; k0 < a.numbers.columns; k0 += kBlock) {
        float sum = 0;
        for (int64_t k = k0; k < std::min(k0 + kBlock, a.numbers.columns); ++k) {
          sum += a.numbers(i, k) * b.numbers(k, j);
        }
        total += sum * (a.scales(i, k0) * b.scales(k0, j));
      }
      out(i, j) = total;
    }
  }
  return out;
}

Cast turned(const Cast& c) { return {c.numbers.transposed(), c.scales.transposed()}; }

/// A tensor with its memory, in bf16 or fp32.
class Stored {
 public:
  Stored(ciuic_dtype dtype, std::vector<int64_t> shape, const std::vector<float>& values)
      : bytes_(values.size() * static_cast<size_t>(dtype_bytes(dtype))),
        tensor_(bytes_.data(), dtype, std::move(shape)) {
    for (size_t i = 0; i < values.size(); ++i) {
      store_element(dtype, at(i), values[i]);
    }
  }
  [[nodiscard]] const ciuic_tensor* c() const { return tensor_.ptr(); }
  [[nodiscard]] float value(size_t i) const {
    return static_cast<float>(load_element(tensor_.c().t.dtype, at(i)));
  }

 private:
  [[nodiscard]] char* at(size_t i) const {
    return const_cast<char*>(bytes_.data()) +
           i * static_cast<size_t>(dtype_bytes(tensor_.c().t.dtype));
  }
  std::vector<char> bytes_;
  Tensor tensor_;
};

class Fp8Block : public ::testing::Test {
 protected:
  void start(const OptionValues& options = {}) {
    instance_ = std::make_unique<PluginInstance>(plugin_.create(host_, options));
    std::vector<ciuic_module> modules;
    for (uint32_t id = 0; id < names_.size(); ++id) {
      modules.push_back({sizeof(ciuic_module), 0, id, 0, to_str(names_[id])});
    }
    instance_->check(table().attach(instance_->self(), to_array(modules)));
  }
  const ciuic_precision_vt& table() const { return instance_->table<ciuic_precision_vt>(); }

  /// gemm with fp32 out, which holds `before`; `groups`: row ends.
  std::vector<float> run(uint32_t module, uint32_t pass, const Stored& a, const Stored& b,
                         std::vector<int64_t> out_shape, std::vector<float> before, double beta,
                         const std::vector<int64_t>& groups = {}) {
    const size_t count = before.size();
    const Stored out(kF32, std::move(out_shape), before);
    std::vector<int64_t> ends = groups;
    const Tensor ends_tensor(ends.data(), kI64, {static_cast<int64_t>(ends.size())});
    ciuic_gemm gemm{};
    gemm.struct_size = sizeof(gemm);
    gemm.flags = pass == CIUIC_GEMM_FORWARD       ? CIUIC_GEMM_TRANS_B
                 : pass == CIUIC_GEMM_GRAD_WEIGHT ? CIUIC_GEMM_TRANS_A
                                                  : 0;
    gemm.module = module;
    gemm.pass = pass;
    gemm.alpha = 1;
    gemm.beta = beta;
    gemm.a = a.c();
    gemm.b = b.c();
    gemm.out = out.c();
    gemm.group_ends = groups.empty() ? nullptr : ends_tensor.ptr();
    instance_->check(table().gemm(instance_->self(), &gemm, nullptr));
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) {
      values.push_back(out.value(i));
    }
    return values;
  }

  static constexpr uint32_t kDense = 0, kExperts = 1, kOutput = 2;
  std::vector<std::string> names_{"model.layers.0.mlp.down_proj",
                                  "model.layers.3.mlp.experts.up_proj",
                                  "model.layers.0.self_attn.o_proj"};
  TestHost host_;
  LoadedPlugin plugin_ = load_plugin("fp8_block");
  std::unique_ptr<PluginInstance> instance_;
};

void expect_same_bits(const std::vector<float>& got, const std::vector<float>& expected,
                      const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i]))
        << what << ", element " << i << ": " << got[i] << ", expected " << expected[i];
  }
}

struct Extents {
  int64_t tokens, in, out;
};
constexpr Extents kExtents[] = {{1, 1, 1}, {128, 128, 128}, {33, 70, 131}, {300, 257, 160}};

TEST_F(Fp8Block, ProductsHaveTheBitsOfThePlainEmulation) {
  for (const char* scales : {"exact", "power_of_two"}) {
    start({{"scales", std::string(scales)}});
    const bool rounds = scales == std::string("power_of_two");
    for (const auto& [tokens, in, out] : kExtents) {
      const Array x = random_array(tokens, in, 1);
      const Array w = random_array(out, in, 2);
      const Array dy = random_array(tokens, out, 3);
      const Stored x_t(kBF16, {tokens, in}, x.x);
      const Stored w_t(kBF16, {out, in}, w.x);
      const Stored dy_t(kBF16, {tokens, out}, dy.x);
      const auto none = [](int64_t rows, int64_t columns) {
        return std::vector<float>(static_cast<size_t>(rows * columns), std::nanf(""));
      };
      const Cast w_cast = cast(w, kBlock, kBlock, rounds);
      expect_same_bits(
          run(kDense, CIUIC_GEMM_FORWARD, x_t, w_t, {tokens, out}, none(tokens, out), 0),
          recipe(cast(x, 1, kBlock, rounds), turned(w_cast)).x, "forward");
      expect_same_bits(
          run(kDense, CIUIC_GEMM_GRAD_INPUT, dy_t, w_t, {tokens, in}, none(tokens, in), 0),
          recipe(cast(dy, 1, kBlock, rounds), w_cast).x, "gradient of the input");
      expect_same_bits(run(kDense, CIUIC_GEMM_GRAD_WEIGHT, dy_t, x_t, {out, in}, none(out, in), 0),
                       recipe(turned(cast(dy, kBlock, 1, rounds)), cast(x, kBlock, 1, rounds)).x,
                       "gradient of the weight");
    }
  }
}

TEST_F(Fp8Block, ExpertsHaveTheBitsOfTheirOwnProducts) {
  start({{"scales", std::string("exact")}});
  const std::vector<int64_t> ends{32, 32, 200, 260};
  constexpr int64_t kTokens = 260, kIn = 96, kOut = 130;
  const Array x = random_array(kTokens, kIn, 1);
  const Array dy = random_array(kTokens, kOut, 3);
  std::vector<float> weights;
  std::vector<float> expected_y, expected_dw;
  const std::vector<float> before(static_cast<size_t>(4 * kOut * kIn), 0.5F);
  int64_t begin = 0;
  for (size_t g = 0; g < ends.size(); begin = ends[g++]) {
    const Array w = random_array(kOut, kIn, 10 + g);
    weights.insert(weights.end(), w.x.begin(), w.x.end());
    const Array x_g = x.some_rows(begin, ends[g]);
    const Array dy_g = dy.some_rows(begin, ends[g]);
    const Array y = recipe(cast(x_g, 1, kBlock, false), turned(cast(w, kBlock, kBlock, false)));
    expected_y.insert(expected_y.end(), y.x.begin(), y.x.end());
    const Array dw = recipe(turned(cast(dy_g, kBlock, 1, false)), cast(x_g, kBlock, 1, false));
    for (int64_t i = 0; i < kOut * kIn; ++i) {
      expected_dw.push_back((dw.x.empty() ? 0 : dw.x[static_cast<size_t>(i)]) + 0.5F);
    }
  }
  const Stored x_t(kBF16, {kTokens, kIn}, x.x);
  const Stored dy_t(kBF16, {kTokens, kOut}, dy.x);
  const Stored w_t(kBF16, {4, kOut, kIn}, weights);
  expect_same_bits(run(kExperts, CIUIC_GEMM_FORWARD, x_t, w_t, {kTokens, kOut},
                       std::vector<float>(expected_y.size()), 0, ends),
                   expected_y, "forward");
  expect_same_bits(
      run(kExperts, CIUIC_GEMM_GRAD_WEIGHT, dy_t, x_t, {4, kOut, kIn}, before, 1, ends),
      expected_dw, "gradients are added to; the second expert has no row");
}

/// One thread or several, and whatever lies beside: the same bits.
TEST_F(Fp8Block, ThreadsChangeNothing) {
  const Array x = random_array(300, 257, 1);
  const Array w = random_array(160, 257, 2);
  const Stored x_t(kBF16, {300, 257}, x.x);
  const Stored w_t(kBF16, {160, 257}, w.x);
  start();
  const std::vector<float> none(300 * 160);
  const std::vector<float> alone = run(kDense, CIUIC_GEMM_FORWARD, x_t, w_t, {300, 160}, none, 0);
  const ReferenceThreads threads(host_.host(), 3);
  host_.offer("ciuic.threads", threads.table());
  start();
  expect_same_bits(run(kDense, CIUIC_GEMM_FORWARD, x_t, w_t, {300, 160}, none, 0), alone,
                   "three threads");
  instance_.reset();
}

/// The paper's scales: powers of two for the input of o_proj, exact ones elsewhere.
TEST_F(Fp8Block, RoundsScalesWhereThePaperDoes) {
  start();
  const Array x = random_array(40, 200, 1);
  const Array w = random_array(24, 200, 2);
  const Stored x_t(kBF16, {40, 200}, x.x);
  const Stored w_t(kBF16, {24, 200}, w.x);
  const Cast w_cast = turned(cast(w, kBlock, kBlock, false));
  const std::vector<float> none(40 * 24);
  expect_same_bits(run(kDense, CIUIC_GEMM_FORWARD, x_t, w_t, {40, 24}, none, 0),
                   recipe(cast(x, 1, kBlock, false), w_cast).x, "down_proj");
  expect_same_bits(run(kOutput, CIUIC_GEMM_FORWARD, x_t, w_t, {40, 24}, none, 0),
                   recipe(cast(x, 1, kBlock, true), w_cast).x, "o_proj");
}

/// What the stored input costs the gradient of o_proj's weight, against the product in fp64. From
/// E4M3 under exact scales each number is rounded twice; E5M6 before E4M3 adds little to one rounding;
/// and E4M3 under powers of two is cast again without loss, which is why the paper rounds scales.
TEST_F(Fp8Block, StoredInputsCostWhatTheirFormatSays) {
  const Array x = random_array(128, 128, 1);
  const Array dy = random_array(128, 64, 2);
  const Stored x_t(kBF16, {128, 128}, x.x);
  const Stored dy_t(kBF16, {128, 64}, dy.x);
  const auto error = [&](const char* scales, const char* option, const char* value) {
    start({{"scales", std::string(scales)}, {option, std::string(value)}});
    const std::vector<float> got =
        run(kOutput, CIUIC_GEMM_GRAD_WEIGHT, dy_t, x_t, {64, 128}, std::vector<float>(64 * 128), 0);
    double squares = 0;
    double total = 0;
    for (int64_t i = 0; i < 64; ++i) {
      for (int64_t j = 0; j < 128; ++j) {
        double exact = 0;
        for (int64_t k = 0; k < 128; ++k) {
          exact += static_cast<double>(dy(k, i)) * x(k, j);
        }
        squares += std::pow(got[static_cast<size_t>(i * 128 + j)] - exact, 2);
        total += exact * exact;
      }
    }
    return std::sqrt(squares / total);
  };
  const double once = error("exact", "stored_inputs", "bf16");
  const double twice = error("exact", "stored_inputs", "e4m3");
  EXPECT_LT(once,
            0.04);  // two operands of half a step, 2^-4, at most; uniform: 2^-4 / sqrt(3) each
  EXPECT_GT(twice, 1.1 * once);
  EXPECT_LT(error("exact", "attention_output", "e5m6"), 1.02 * once);
  EXPECT_NEAR(error("power_of_two", "stored_inputs", "e4m3") /
                  error("power_of_two", "stored_inputs", "bf16"),
              1, 1e-3);
}

TEST_F(Fp8Block, LeavesWideWhatTheRecipeDoes) {
  names_ = {"model.embed_tokens",
            "lm_head",
            "model.layers.3.mlp.gate",
            "model.layers.0.self_attn.kv_a_layernorm",
            "model.layers.61.eh_proj",
            "model.layers.0.self_attn.kv_a_proj_with_mqa",
            "model.layers.3.mlp.experts.7.gate_proj"};
  start();
  for (uint32_t id = 0; id < names_.size(); ++id) {
    EXPECT_EQ(table().hooks(instance_->self(), id, {CIUIC_DEVICE_CPU, 0}) != 0, id >= 5)
        << names_[id];
  }
}

}  // namespace
}  // namespace ciuic::testing
