// SPDX-License-Identifier: MIT
//
// What sharding plugins ask the host for, in the words that they use.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <ciuic/abi/optimizer.h>
#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>
#include <ciuic/sharding/bucket_plan.hpp>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

namespace ciuic::plugins::stages {

/// The run's optimizer; where there is none (an evaluation), parameters have no state.
class OptimizerService {
 public:
  explicit OptimizerService(const Host& host) : host_(host) {
    if (const auto* service = host.find_service<ciuic_kind_service>("ciuic.optimizer")) {
      vt_ = static_cast<const ciuic_optimizer_vt*>(service->vt);
      self_ = service->self;
    }
  }
  [[nodiscard]] bool is_there() const { return vt_ != nullptr; }
  [[nodiscard]] ArrayView<ciuic_state_spec> state_spec(const ciuic_param& p) const {
    ciuic_array specs{nullptr, 0, 0};
    if (vt_ != nullptr && sharding::is_trained(p)) {
      host_.check(vt_->state_spec(self_, &p, &specs));
    }
    return specs;
  }
  void update(const std::vector<ciuic_update>& updates, const ciuic_stream* stream) const {
    host_.check(vt_->update(self_, to_array(updates), stream));
  }

 private:
  Host host_;
  const ciuic_optimizer_vt* vt_ = nullptr;
  ciuic_instance* self_ = nullptr;
};

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
  /// out += in
  void add(const Tensor& in, const Tensor& out, const ciuic_stream* stream) const {
    if (num_elements(in.c()) > 0) {
      host_.check(table_.add(table_.ctx, 1, in.ptr(), 1, out.ptr(), stream));
    }
  }
  /// Adds to out[0] the sum of squares, to out[1] the number of non-finite elements.
  void add_stats(const Tensor& in, const Tensor& out, const ciuic_stream* stream) const {
    if (num_elements(in.c()) > 0) {
      host_.check(table_.stats(table_.ctx, in.ptr(), out.ptr(), stream));
    }
  }
  /// Values on the host, the first `count` of them. Waits for the stream.
  template <size_t n>
  std::array<double, n> read(const Tensor& in, const ciuic_stream* stream,
                             int64_t count = n) const {
    std::array<double, n> values{};
    const Tensor out(values.data(), kF64, {count});
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

}  // namespace ciuic::plugins::stages
