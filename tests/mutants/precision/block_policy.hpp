// SPDX-License-Identifier: MIT
//
// A correct policy that computes products in FP8 (e4m3fn) with a scale a block, as DeepSeek-V3 does
// (arXiv:2412.19437, sec. 3.3): 1 x 128 for activations and their gradients, 128 x 128 for weights.
// Plain loops; casts of weights are kept by version. Hooks are where its broken children differ.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ciuic/precision.hpp>

namespace ciuic::mutants {

inline constexpr ciuic_dtype kE4M3{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1};
constexpr int64_t kBlock = 128;
constexpr float kLargest = 448;

inline float read_number(ciuic_dtype dtype, const char* at) {
  float out = 0;
  if (same(dtype, kBF16)) {
    std::memcpy(reinterpret_cast<char*>(&out) + 2, at, 2);
    return out;
  }
  if (!same(dtype, kF32)) {
    throw Error(CIUIC_UNIMPLEMENTED, "numbers of type " + dtype_name(dtype));
  }
  std::memcpy(&out, at, 4);
  return out;
}
inline void write_number(ciuic_dtype dtype, char* at, float value) {
  if (same(dtype, kBF16)) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    const auto rounded = static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
    std::memcpy(at, &rounded, 2);
    return;
  }
  std::memcpy(at, &value, 4);
}

/// Numbers by row and column.
struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> at;

  [[nodiscard]] float operator()(int64_t r, int64_t c) const {
    return at[static_cast<size_t>(r * columns + c)];
  }
};

class BlockPolicy : public Precision {
 public:
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr std::array<const char*, 4> features{"cast:row_major", "cast:saturates",
                                                       "scale:power_of_two", nullptr};
  using Precision::Precision;

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view, uint32_t role) const override {
    switch (role) {
      case CIUIC_ROLE_VALUE:
      case CIUIC_ROLE_ACTIVATION:
      case CIUIC_ROLE_ACTIVATION_GRAD:
        return kBF16;
      case CIUIC_ROLE_COMPUTE:
        return kE4M3;
      default:
        return kF32;
    }
  }
  void attach(ArrayView<ciuic_module> modules) override {
    for (const ciuic_module& module : modules) {
      taken_[module.id] = to_view(module.name).find("proj") != std::string_view::npos;
    }
  }
  [[nodiscard]] uint32_t hooks(uint32_t module, ciuic_device device) const override {
    const auto found = taken_.find(module);
    return found != taken_.end() && found->second && device.type == CIUIC_DEVICE_CPU ? 0b1110 : 0;
  }

  void format(const ciuic_cast& cast, ciuic_format& out) const override {
    const bool is_weight = cast.role == CIUIC_ROLE_VALUE || cast.role == CIUIC_ROLE_COMPUTE;
    const bool is_taken =
        is_weight || cast.role == CIUIC_ROLE_ACTIVATION || cast.role == CIUIC_ROLE_ACTIVATION_GRAD;
    const ciuic_dtype in = cast.in->t.dtype;
    if (!is_taken || cast.in->t.ndim != 2 || !(same(in, kF32) || same(in, kBF16))) {
      Precision::format(cast, out);
    }
    out.dtype = kE4M3;
    out.scale_dtype = kF32;
    out.block_rows = is_weight ? kBlock : 1;
    out.block_cols = kBlock;
    const int64_t rows = cast.in->t.shape[0];
    const int64_t columns = cast.in->t.shape[1];
    out.elements = rows * columns;
    out.scale_elements = (rows + out.block_rows - 1) / out.block_rows *
                         ((columns + out.block_cols - 1) / out.block_cols);
  }

  void cast(const ciuic_cast& cast, const ciuic_stream*) override {
    ciuic_format f{};
    format(cast, f);
    const Matrix in = read(*cast.in);
    auto* codes = static_cast<uint8_t*>(tensor_data(*cast.out));
    auto* scales = static_cast<char*>(tensor_data(*cast.scale));
    int64_t block = 0;
    for (int64_t r = 0; r < in.rows; r += f.block_rows) {
      for (int64_t c = 0; c < in.columns; c += f.block_cols, ++block) {
        const float scale = cast_block(
            in, {r, c, std::min(r + f.block_rows, in.rows), std::min(c + f.block_cols, in.columns)},
            codes);
        std::memcpy(scales + 4 * block, &scale, 4);
      }
    }
  }

  void gemm(const ciuic_gemm& gemm, const ciuic_stream*) override {
    if (hooks(gemm.module, gemm.a->t.device) == 0) {
      throw Error(CIUIC_UNIMPLEMENTED, "no product of this module");
    }
    const bool is_weight_gradient = gemm.pass == CIUIC_GEMM_GRAD_WEIGHT;
    const Matrix a = operand(
        gemm, *gemm.a, gemm.a_scale,
        gemm.pass == CIUIC_GEMM_FORWARD ? CIUIC_ROLE_ACTIVATION : CIUIC_ROLE_ACTIVATION_GRAD);
    if (gemm.group_ends == nullptr) {
      const Matrix b = kept_b(gemm);
      multiply(gemm, rows_of(a, 0, a.rows), b, *gemm.out, 0);
      return;
    }
    const auto* ends = elements<int64_t>(*gemm.group_ends);
    int64_t begin = 0;
    for (int64_t g = 0; g < gemm.group_ends->t.shape[0]; begin = ends[g], ++g) {
      if (is_weight_gradient) {
        const Matrix b = operand(gemm, *gemm.b, gemm.b_scale, CIUIC_ROLE_ACTIVATION);
        multiply(gemm, rows_of(a, begin, ends[g]), rows_of(b, begin, ends[g]), *gemm.out, g);
      } else {
        multiply(gemm, rows_of(a, begin, ends[g]), expert(gemm, g), *gemm.out, begin);
      }
    }
  }

 protected:
  struct Block {
    int64_t r0, c0, r1, c1;
  };

  /// A power of two under which the largest number fits.
  [[nodiscard]] virtual float scale_of(float largest) const {
    return largest == 0 ? 1.0F : std::exp2(std::ceil(std::log2(largest / kLargest)));
  }
  [[nodiscard]] virtual float round(float steps) const { return std::nearbyint(steps); }
  /// Numbers past the largest.
  [[nodiscard]] virtual uint8_t past_the_largest(float) const { return 0x7E; }
  [[nodiscard]] virtual float beta_of(const ciuic_gemm& gemm) const {
    return static_cast<float>(gemm.beta);
  }
  [[nodiscard]] virtual int64_t depth_of(int64_t depth) const { return depth; }
  using Key = std::pair<uint32_t, uint32_t>;
  [[nodiscard]] virtual Key key_of(const ciuic_gemm& gemm) const {
    return {gemm.module, gemm.pass};
  }
  /// Columns of a block that the largest number is looked for in.
  [[nodiscard]] virtual int64_t last_column(const Block& b) const { return b.c1; }

  [[nodiscard]] uint8_t encode(float x) const {
    const uint8_t sign = std::signbit(x) ? 0x80 : 0;
    const float magnitude = std::fabs(x);
    if (std::isnan(x)) {
      return sign | 0x7F;
    }
    if (std::isinf(x)) {
      return sign | past_the_largest(magnitude);
    }
    const int exponent = magnitude < 0x1p-6F ? -6 : std::ilogb(magnitude);
    const float value = std::ldexp(round(std::ldexp(magnitude, 3 - exponent)), exponent - 3);
    if (value > kLargest) {
      return sign | past_the_largest(value);
    }
    if (value < 0x1p-6F) {
      return sign | static_cast<uint8_t>(std::ldexp(value, 9));
    }
    const int e = std::ilogb(value);
    return sign |
           static_cast<uint8_t>(((e + 7) << 3) + static_cast<int>(std::ldexp(value, 3 - e)) - 8);
  }
  static float decode(uint8_t code) {
    const int exponent = code >> 3 & 15;
    const int mantissa = code & 7;
    const float sign = (code & 0x80) != 0 ? -1.0F : 1.0F;
    if (exponent == 15 && mantissa == 7) {
      return NAN;
    }
    return exponent == 0 ? sign * std::ldexp(static_cast<float>(mantissa), -9)
                         : sign * std::ldexp(static_cast<float>(mantissa + 8), exponent - 10);
  }

 private:
  /// Writes the codes of a block, returns its scale. A block with anything bad in it keeps that.
  float cast_block(const Matrix& in, const Block& b, uint8_t* codes) const {
    float largest = 0;
    for (int64_t r = b.r0; r < b.r1; ++r) {
      for (int64_t c = b.c0; c < last_column(b); ++c) {
        const float x = std::fabs(in(r, c));
        largest = std::isfinite(x) ? std::max(largest, x) : largest;
      }
    }
    const float scale = scale_of(largest);
    for (int64_t r = b.r0; r < b.r1; ++r) {
      for (int64_t c = b.c0; c < b.c1; ++c) {
        codes[r * in.columns + c] = encode(in(r, c) / scale);
      }
    }
    return scale;
  }

  static Matrix read(const ciuic_tensor& t, int64_t matrix = 0) {
    const int32_t n = t.t.ndim;
    Matrix out{t.t.shape[n - 2], t.t.shape[n - 1], {}};
    const int64_t first = n == 3 ? matrix * t.t.strides[0] : 0;
    for (int64_t r = 0; r < out.rows; ++r) {
      for (int64_t c = 0; c < out.columns; ++c) {
        const int64_t at = first + r * t.t.strides[n - 2] + c * t.t.strides[n - 1];
        out.at.push_back(read_number(
            t.t.dtype, static_cast<const char*>(tensor_data(t)) + at * dtype_bytes(t.t.dtype)));
      }
    }
    return out;
  }
  static Matrix rows_of(const Matrix& m, int64_t begin, int64_t end) {
    return {
        end - begin, m.columns, {m.at.begin() + begin * m.columns, m.at.begin() + end * m.columns}};
  }

  /// The numbers that a product sees: through the cast and back.
  Matrix through_cast(const ciuic_gemm& gemm, const Matrix& numbers, uint32_t role) {
    std::vector<float> values = numbers.at;
    const Tensor in(values.data(), kF32, {numbers.rows, numbers.columns});
    ciuic_cast request{sizeof(ciuic_cast), 0,       gemm.module, gemm.pass, role, 0,
                       in.ptr(),           nullptr, nullptr};
    ciuic_format f{};
    format(request, f);
    std::vector<uint8_t> codes(static_cast<size_t>(f.elements));
    std::vector<float> scales(static_cast<size_t>(f.scale_elements));
    const Tensor out(codes.data(), f.dtype, {numbers.rows, numbers.columns});
    const Tensor scale(scales.data(), f.scale_dtype, {f.scale_elements});
    request.out = out.ptr();
    request.scale = scale.ptr();
    cast(request, nullptr);
    return decoded(out.c(), scale.c(), f.block_rows);
  }
  static Matrix decoded(const ciuic_tensor& codes, const ciuic_tensor& scales, int64_t block_rows) {
    Matrix out{codes.t.shape[0], codes.t.shape[1], {}};
    const auto* code = static_cast<const uint8_t*>(tensor_data(codes));
    const auto* scale = static_cast<const char*>(tensor_data(scales));
    const int64_t across = (out.columns + kBlock - 1) / kBlock;
    for (int64_t r = 0; r < out.rows; ++r) {
      for (int64_t c = 0; c < out.columns; ++c) {
        float s = 0;
        std::memcpy(&s, scale + 4 * (r / block_rows * across + c / kBlock), 4);
        out.at.push_back(decode(code[r * out.columns + c]) * s);
      }
    }
    return out;
  }

  Matrix operand(const ciuic_gemm& gemm, const ciuic_tensor& t, const ciuic_tensor* scale,
                 uint32_t role) {
    if (scale != nullptr) {
      return decoded(t, *scale, role == CIUIC_ROLE_VALUE ? kBlock : 1);
    }
    return through_cast(gemm, read(t), role);
  }
  static uint32_t role_of_b(const ciuic_gemm& gemm) {
    return gemm.pass == CIUIC_GEMM_GRAD_WEIGHT ? CIUIC_ROLE_ACTIVATION : CIUIC_ROLE_VALUE;
  }
  Matrix kept_b(const ciuic_gemm& gemm) {
    if (gemm.b_version == 0) {
      return operand(gemm, *gemm.b, gemm.b_scale, role_of_b(gemm));
    }
    auto& kept = kept_[key_of(gemm)];
    if (kept.first != gemm.b_version) {
      kept = {gemm.b_version, operand(gemm, *gemm.b, gemm.b_scale, role_of_b(gemm))};
    }
    return kept.second;
  }
  Matrix expert(const ciuic_gemm& gemm, int64_t group) {
    return through_cast(gemm, read(*gemm.b, group), CIUIC_ROLE_VALUE);
  }

  /// Into rows of out from `first` on, or, when out holds matrices, into matrix `first`.
  void multiply(const ciuic_gemm& gemm, const Matrix& a, const Matrix& b, const ciuic_tensor& out,
                int64_t first) const {
    const bool trans_a = (gemm.flags & CIUIC_GEMM_TRANS_A) != 0;
    const bool trans_b = (gemm.flags & CIUIC_GEMM_TRANS_B) != 0;
    const int32_t n = out.t.ndim;
    const int64_t depth = depth_of(trans_a ? a.rows : a.columns);
    const int64_t offset = first * out.t.strides[0];
    for (int64_t i = 0; i < (trans_a ? a.columns : a.rows); ++i) {
      for (int64_t j = 0; j < (trans_b ? b.rows : b.columns); ++j) {
        float sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum += (trans_a ? a(k, i) : a(i, k)) * (trans_b ? b(j, k) : b(k, j));
        }
        char* at = static_cast<char*>(tensor_data(out)) +
                   (offset + i * out.t.strides[n - 2] + j * out.t.strides[n - 1]) *
                       dtype_bytes(out.t.dtype);
        const float beta = beta_of(gemm);
        const float before = beta == 0 ? 0 : beta * read_number(out.t.dtype, at);
        write_number(out.t.dtype, at, static_cast<float>(gemm.alpha) * sum + before);
      }
    }
  }

  std::map<uint32_t, bool> taken_;
  std::map<Key, std::pair<uint64_t, Matrix>> kept_;
};

}  // namespace ciuic::mutants
