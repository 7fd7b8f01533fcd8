// SPDX-License-Identifier: MIT
//
// What ddp asks the host for, in the words that it uses.
#pragma once

#include <array>
#include <cstdint>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

namespace ciuic::plugins::ddp {

/// "ciuic.tensor" with errors as exceptions. Calls are in stream order; a NULL stream blocks.
class TensorOps {
 public:
  explicit TensorOps(const Host& host)
      : host_(host), table_(host.service<ciuic_tensor_service>("ciuic.tensor")) {}

  void fill(const Tensor& out, double value, const ciuic_stream* stream = nullptr) const {
    if (num_elements(out.c()) > 0) {
      host_.check(table_.fill(table_.ctx, out.ptr(), value, stream));
    }
  }
  void copy(const Tensor& in, const Tensor& out, const ciuic_stream* stream = nullptr) const {
    if (num_elements(in.c()) > 0) {
      host_.check(table_.copy(table_.ctx, in.ptr(), out.ptr(), stream));
    }
  }
  /// Adds to out[0] the sum of squares, to out[1] the number of non-finite elements.
  void add_stats(const Tensor& in, const Tensor& out, const ciuic_stream* stream) const {
    host_.check(table_.stats(table_.ctx, in.ptr(), out.ptr(), stream));
  }
  /// Values on the host. Waits for the stream.
  template <size_t n>
  std::array<double, n> read(const Tensor& in, const ciuic_stream* stream) const {
    std::array<double, n> values{};
    const Tensor out(values.data(), kF64, {n});
    copy(in, out, stream);
    if (stream != nullptr) {
      const auto& streams = host_.service<ciuic_stream_service>("ciuic.stream");
      ciuic_work* here = nullptr;
      host_.check(streams.record(streams.ctx, stream, &here));
      Work(here).wait(host_);
    }
    return values;
  }

 private:
  Host host_;
  const ciuic_tensor_service& table_;
};

}  // namespace ciuic::plugins::ddp
