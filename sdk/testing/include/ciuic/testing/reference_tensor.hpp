// SPDX-License-Identifier: MIT
//
// "ciuic.tensor" as plain loops over host memory: slow, obvious, any strides.
#pragma once

#include <cmath>

#include <ciuic/abi/services.h>
#include <ciuic/testing/numbers.hpp>
#include <ciuic/testing/plain_product.hpp>
#include <ciuic/testing/test_host.hpp>

namespace ciuic::testing {

class ReferenceTensor {
 public:
  explicit ReferenceTensor(Host host) : host_(host) {
    table_.struct_size = sizeof(table_);
    table_.ctx = this;
    table_.fill = [](void* ctx, const ciuic_tensor* out, double value, const ciuic_stream*) {
      return guard(from(ctx), [&] {
        for (int64_t i = 0; i < num_elements(*out); ++i) {
          store(*out, i, value);
        }
      });
    };
    table_.copy = [](void* ctx, const ciuic_tensor* in, const ciuic_tensor* out,
                     const ciuic_stream*) {
      return guard(from(ctx), [&] {
        check_same_size(*in, *out);
        for (int64_t i = 0; i < num_elements(*in); ++i) {
          store(*out, i, load(*in, i));
        }
      });
    };
    table_.add = [](void* ctx, double alpha, const ciuic_tensor* in, double beta,
                    const ciuic_tensor* out, const ciuic_stream*) {
      return guard(from(ctx), [&] {
        check_same_size(*in, *out);
        for (int64_t i = 0; i < num_elements(*in); ++i) {
          store(*out, i, alpha * load(*in, i) + beta * load(*out, i));
        }
      });
    };
    table_.stats = [](void* ctx, const ciuic_tensor* in, const ciuic_tensor* out,
                      const ciuic_stream*) {
      return guard(from(ctx), [&] { add_stats(*in, elements<double>(*out)); });
    };
    table_.gemm = [](void* ctx, const ciuic_gemm* gemm, const ciuic_stream*) {
      return guard(from(ctx), [&] { plain_product(*gemm); });
    };
  }
  ReferenceTensor(const ReferenceTensor&) = delete;
  ReferenceTensor& operator=(const ReferenceTensor&) = delete;

  [[nodiscard]] const ciuic_tensor_service* table() const noexcept { return &table_; }

 private:
  static Host from(void* ctx) { return static_cast<ReferenceTensor*>(ctx)->host_; }
  static double load(const ciuic_tensor& t, int64_t i) {
    return load_element(t.t.dtype, element_at(t, i));
  }
  static void store(const ciuic_tensor& t, int64_t i, double value) {
    store_element(t.t.dtype, element_at(t, i), value);
  }
  static void check_same_size(const ciuic_tensor& in, const ciuic_tensor& out) {
    if (num_elements(in) != num_elements(out)) {
      throw Error(CIUIC_INVALID, "got " + std::to_string(num_elements(in)) +
                                     " elements, expected " + std::to_string(num_elements(out)));
    }
  }
  static void add_stats(const ciuic_tensor& in, double* out) {
    for (int64_t i = 0; i < num_elements(in); ++i) {
      const double x = load(in, i);
      out[0] += x * x;
      out[1] += std::isfinite(x) ? 0 : 1;
    }
  }

  Host host_;
  ciuic_tensor_service table_{};
};

}  // namespace ciuic::testing
