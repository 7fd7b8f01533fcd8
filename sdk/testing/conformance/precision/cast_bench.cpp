// SPDX-License-Identifier: MIT
#include "cast_bench.hpp"

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <tuple>

namespace ciuic::testing {
namespace {

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

auto identity(const Offer& o) {
  const ciuic_format& f = o.format;
  return std::make_tuple(dtype_name(o.kind.in), dtype_name(f.dtype),
                         f.scale_elements > 0 ? dtype_name(f.scale_dtype) : "none", f.block_rows,
                         f.block_cols, f.elements, f.scale_elements);
}

bool scale_is_readable(ciuic_dtype dtype) {
  return same(dtype, kF32) || same(dtype, kF64) || FloatFormat::knows(dtype);
}

}  // namespace

std::string exact_text(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

std::string to_text(const CastKind& kind) {
  const char* module = "?";
  for (const Module& m : kModules) {
    module = m.id == kind.module ? m.name : module;
  }
  return std::string("cast of ") + role_name(kind.role) + " of " + module + " for " +
         pass_name(kind.pass) + " from " + dtype_name(kind.in);
}

ciuic_cast cast_of(const CastKind& kind, const ciuic_tensor* in, const ciuic_tensor* out,
                   const ciuic_tensor* scale) {
  return {sizeof(ciuic_cast), 0, kind.module, kind.pass, kind.role, 0, in, out, scale};
}

std::vector<Offer> offers_of(const PolicyBench& policy) {
  std::vector<Offer> out;
  std::set<decltype(identity(out[0]))> known;
  for (const Module& module : kModules) {
    for (uint32_t pass = CIUIC_GEMM_FORWARD; pass <= CIUIC_GEMM_GRAD_WEIGHT; ++pass) {
      for (uint32_t role = kFirstRole; role <= kLastRole; ++role) {
        for (const ciuic_dtype dtype : {kF32, kBF16, kF16}) {
          const CastKind kind{module.id, pass, role, dtype};
          const Tensor in(nullptr, dtype, {256, 384});
          const auto format = policy.format(cast_of(kind, in.ptr()));
          if (format && known.insert(identity({kind, *format})).second) {
            out.push_back({kind, *format});
          }
        }
      }
    }
  }
  if (out.empty()) {
    throw NotOffered("the policy offers no format");
  }
  return out;
}

std::vector<Offer> readable_offers(const TestContext& context, const PolicyBench& policy,
                                   bool scaled) {
  std::vector<Offer> out;
  const std::vector<Offer> all = offers_of(policy);
  if (!has_feature(context.plugin.descriptor(), "cast:row_major")) {
    throw NotOffered("no feature \"cast:row_major\": the layout of a cast is the policy's own");
  }
  for (const Offer& offer : all) {
    if (offer.is_scaled() == scaled && FloatFormat::knows(offer.format.dtype) &&
        (!scaled || scale_is_readable(offer.format.scale_dtype))) {
      out.push_back(offer);
    }
  }
  if (out.empty()) {
    throw NotOffered(scaled ? "no format has scales" : "every format has scales");
  }
  return out;
}

CastInput::CastInput(ciuic_dtype dtype, int64_t rows, int64_t columns,
                     const std::vector<double>& values, int64_t row_stride)
    : shape_{rows, columns},
      strides_{row_stride == 0 ? columns : row_stride, 1},
      data_(static_cast<size_t>(rows * strides_[0] * dtype_bytes(dtype))) {
  std::memset(data_.data(), 0xFF, data_.size());  // NaN between rows
  ciuic_tensor t{};
  t.struct_size = sizeof(t);
  t.flags = CIUIC_TENSOR_READ_ONLY;
  t.t = {rows * columns == 0 ? nullptr : data_.data(),
         {CIUIC_DEVICE_CPU, 0},
         2,
         dtype,
         shape_.data(),
         strides_.data(),
         0};
  tensor_ = std::make_unique<GuardedStruct<ciuic_tensor>>(t);
  for (int64_t i = 0; i < rows * columns; ++i) {
    store_element(dtype, element_at(t, i), values.at(static_cast<size_t>(i)));
  }
}

double CastInput::at(int64_t row, int64_t column) const {
  return load_element(c()->t.dtype, element_at(*c(), row * columns() + column));
}

CastResult::CastResult(const PolicyBench& policy, const CastKind& kind, const CastInput& in)
    : rows_(in.rows()), columns_(in.columns()) {
  const auto format = policy.format(cast_of(kind, in.c()));
  const std::string what =
      to_text(kind) + ", " + std::to_string(in.rows()) + " x " + std::to_string(in.columns());
  require(format.has_value(),
          [&] { return what + ": format says UNIMPLEMENTED, though not for 256 x 384"; });
  format_ = *format;
  require(format_.elements >= 0 && format_.scale_elements >= 0 &&
              (format_.elements > 0 || rows_ * columns_ == 0),
          [&] {
            return what + ": format says " + std::to_string(format_.elements) + " elements and " +
                   std::to_string(format_.scale_elements) + " scales";
          });
  out_memory_ = std::make_unique<GuardedBytes>(
      static_cast<size_t>((format_.elements * format_.dtype.bits + 7) / 8));
  scale_memory_ = std::make_unique<GuardedBytes>(
      static_cast<size_t>(format_.scale_elements * dtype_bytes(format_.scale_dtype)));
  std::memset(out_memory_->data(), 0xFF, out_memory_->size());
  std::memset(scale_memory_->data(), 0xFF, scale_memory_->size());
  const bool same_shape = format_.elements == rows_ * columns_;
  out_ = Tensor(
      out_memory_->data(), format_.dtype,
      same_shape ? std::vector<int64_t>{rows_, columns_} : std::vector<int64_t>{format_.elements});
  scale_ = Tensor(scale_memory_->data(), format_.scale_dtype, {format_.scale_elements});
  policy.cast(cast_of(kind, in.c(), out(), scale()));
}

std::string CastResult::bytes() const {
  return std::string(out_memory_->data(), out_memory_->size()) +
         std::string(scale_memory_->data(), scale_memory_->size());
}

int64_t CastResult::block_rows() const {
  return format_.block_rows > 0 ? format_.block_rows : rows_;
}
int64_t CastResult::block_columns() const {
  return format_.block_cols > 0 ? format_.block_cols : columns_;
}
int64_t CastResult::blocks_across() const { return round_up(columns_, block_columns()); }

uint32_t CastResult::code(int64_t row, int64_t column) const {
  require(has_shape_of_in(), [&] {
    return "\"cast:row_major\": format says " + std::to_string(format_.elements) +
           " elements for " + std::to_string(rows_) + " x " + std::to_string(columns_) + " numbers";
  });
  const char* at = out_memory_->data() + (row * columns_ + column) * dtype_bytes(format_.dtype);
  return format_.dtype.bits == 8 ? read_as<uint8_t>(at) : read_as<uint16_t>(at);
}

double CastResult::scale_of(int64_t row, int64_t column) const {
  if (format_.scale_elements == 0) {
    return 1;
  }
  const int64_t expected = round_up(rows_, block_rows()) * blocks_across();
  require(format_.scale_elements == expected, [&] {
    return "format says " + std::to_string(format_.scale_elements) + " scales for " +
           std::to_string(rows_) + " x " + std::to_string(columns_) + " in blocks of " +
           std::to_string(block_rows()) + " x " + std::to_string(block_columns()) + "; expected " +
           std::to_string(expected);
  });
  const int64_t block = row / block_rows() * blocks_across() + column / block_columns();
  return load_element(format_.scale_dtype,
                      scale_memory_->data() + block * dtype_bytes(format_.scale_dtype));
}

double CastResult::value(int64_t row, int64_t column) const {
  return FloatFormat::of(format_.dtype).decode(code(row, column)) * scale_of(row, column);
}

std::vector<double> varied_values(uint64_t seed, int64_t count, int lowest_exponent,
                                  int highest_exponent) {
  std::mt19937_64 random(seed);
  std::vector<double> out(static_cast<size_t>(count));
  for (double& x : out) {
    const double mantissa = 1 + static_cast<double>(random() % (1 << 23)) / (1 << 23);
    const int exponent =
        lowest_exponent +
        static_cast<int>(random() % static_cast<uint64_t>(highest_exponent - lowest_exponent + 1));
    x = random() % 40 == 0 ? 0 : std::ldexp(random() % 2 == 0 ? mantissa : -mantissa, exponent);
  }
  return out;
}

}  // namespace ciuic::testing
