// SPDX-License-Identifier: MIT
//
// Forward and backward of one micro-batch, unit by unit: bind, compute, drop; then in reverse bind,
// compute, grad_ready, drop. The reduction of a unit's gradients may start under the next unit's
// backward.
#pragma once

#include <cstdint>

#include "core/plugin/events.h"
#include "core/train/binder.h"
#include "core/train/micro_batch.h"

namespace ciuic::core {

struct PassResult {
  double loss_sum = 0;  // over tokens, in fp64
  int64_t tokens = 0;
};

struct PassSeconds {
  double forward = 0;
  double backward = 0;
};

class Passes {
 public:
  Passes(Model& model, Binder& binder, Events& events)
      : model_(model), binder_(binder), events_(events) {}

  /// `seed`: d(objective)/d(loss of one token). `is_last`: the step's last micro-batch, so
  /// reductions may start. Idle micro-batches walk the units too.
  PassResult train(const MicroBatch& batch, uint32_t index, bool is_last, double seed,
                   PassSeconds& seconds);
  /// Loss alone.
  PassResult evaluate(const MicroBatch& batch, uint32_t index);

 private:
  at::Tensor forward(const MicroBatch& batch, uint32_t index, std::vector<LayerTape>* tapes);
  PassResult backward(const MicroBatch& batch, at::Tensor hidden, uint32_t index, uint32_t flags,
                      double seed, std::vector<LayerTape>& tapes);
  void walk_idle(uint32_t index, bool is_last);

  Model& model_;
  Binder& binder_;
  Events& events_;
};

}  // namespace ciuic::core
