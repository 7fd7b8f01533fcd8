// SPDX-License-Identifier: MIT
//
// Gradients in flat buckets, and their sums over the ranks. Backward fills the buckets from the
// last unit on; a full one starts its all-reduce while backward goes on (PyTorch Distributed,
// arXiv:2006.15704, sec. 3.2).
//
// Buckets are submitted in one fixed order, so all ranks agree, whatever the order in which their
// units became ready. Gradients come scaled by the global token count: they are summed, never
// averaged.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <ciuic/abi/sharding.h>
#include <ciuic/host.hpp>
#include <ciuic/work.hpp>

#include "bucket_plan.h"
#include "services.h"

namespace ciuic::plugins::ddp {

class Gradients {
 public:
  struct Settings {
    int64_t bucket_bytes;
    bool name_bad_rank;  // look for non-finite values before the sum hides whose they are
  };
  /// Where a use puts a parameter's gradient.
  struct Target {
    const ciuic_tensor* grad;  // of the parameter's shape; NULL: the parameter has none
    bool is_garbage;           // write all of it, do not add
  };

  /// `plan` stays valid.
  Gradients(const Host& host, ciuic_device device, const ciuic_shard_plan& plan, Settings settings);
  /// Waits for what is under way: a transport may still read and write the buckets.
  ~Gradients();
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  // ---- one step, in this order ----

  void begin_step();
  /// A use is about to write. For an idle one, gradients that nobody wrote yet become zero here.
  [[nodiscard]] Target bind(uint64_t param, bool is_idle, const ciuic_stream* stream);
  /// The use wrote. If it turned idle after its bind, what it was to overwrite becomes zero.
  void written(uint64_t param, bool is_idle, const ciuic_stream* stream);
  /// The unit's gradients are complete: starts every bucket that now is.
  void unit_ready(uint32_t unit, const ciuic_stream* stream);
  /// Starts the remaining buckets; gradients that no use wrote are zero.
  void flush(const ciuic_stream* stream);
  /// Waits for the sums; equal on all ranks.
  void stats(double grad_scale, const ciuic_stream* stream, ciuic_grad_stats& out);
  /// Waits for the sums. By parameter: its gradient in one dimension; NULL for tied, frozen and
  /// empty ones.
  const std::vector<const ciuic_tensor*>& sums(const ciuic_stream* stream);

  /// Waits, at most so long, and forgets.
  void rollback(int64_t timeout_ns);

  [[nodiscard]] const Tensor& flat(uint64_t param) const { return stored_[param].flat; }

 private:
  struct Stored {
    Tensor view;  // of the parameter's shape
    Tensor flat;
    size_t bucket = 0;
    // In this step:
    bool is_written = false;
    bool is_pending = false;  // a use was told to overwrite and has not reported yet
  };
  struct Filled {
    Bucket plan;
    std::string label;
    const ciuic_group* group = nullptr;
    Tensor gradients;             // all of it, with padding
    Tensor wire;                  // what travels: `gradients`, or a copy in the reduce type
    std::vector<Tensor> in_norm;  // the runs of it that count in the norm
    Tensor own_stats;             // of this rank's gradients, before the sum
    size_t units_missing = 0;
    Work work;

    [[nodiscard]] bool travels() const { return group->size > 1; }
    [[nodiscard]] bool is_cast() const { return travels() && !same(plan.grad, plan.reduce); }
    [[nodiscard]] int64_t elements() const { return plan.bytes / dtype_bytes(plan.grad); }
    [[nodiscard]] int64_t wire_bytes() const {
      return is_cast() ? aligned(elements() * dtype_bytes(plan.reduce)) : 0;
    }
  };

  void check_transport(const Filled& bucket, ciuic_device device) const;
  void allocate(ciuic_device device);
  void place(size_t index, char* memory, ciuic_device device);

  void submit_ready(const ciuic_stream* stream);
  void submit(Filled& bucket, const ciuic_stream* stream);
  void drain(const ciuic_stream* stream);
  void check_flushed() const;

  [[nodiscard]] std::array<double, 2> norm_stats(const ciuic_stream* stream) const;
  [[nodiscard]] uint64_t first_bad_param(const ciuic_stream* stream) const;
  [[nodiscard]] int32_t first_bad_rank(uint64_t param, const ciuic_stream* stream) const;
  void reduce_over_world(double* values, int64_t count, uint32_t reduce) const;

  Host host_;
  ArrayView<ciuic_param> params_;
  int32_t rank_;
  int32_t world_;
  bool names_bad_rank_;
  TensorOps ops_;
  bool is_uniform_ = true;  // every rank holds every gradient: no exchange is needed for the norm

  std::vector<Buffer> memory_;
  std::vector<Stored> stored_;  // by parameter
  std::vector<Filled> buckets_;
  std::vector<std::vector<size_t>> buckets_of_unit_;
  std::vector<const ciuic_tensor*> sums_;  // by parameter
  Tensor own_stats_;                       // of all buckets
  Tensor total_stats_;

  // Of this step:
  std::vector<bool> is_ready_;  // by unit
  bool is_flushed_ = false;
  size_t submitted_ = 0;
  size_t drained_ = 0;
  uint64_t sequence_ = 0;  // over all steps
};

}  // namespace ciuic::plugins::ddp
