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
  double prediction_loss_sum = 0;  // over tokens and depths
  int64_t predicted_tokens = 0;
  bool is_finite = true;  // of training: its loss, and the gradient where it reaches the embedding
};

struct PassSeconds {
  double forward = 0;
  double backward = 0;
};

class Passes {
 public:
  struct Settings {
    Recompute recompute = Recompute::None;
    uint64_t seed = 0;
  };
  Passes(Model& model, Binder& binder, Events& events, const Settings& settings)
      : model_(model), binder_(binder), events_(events), settings_(settings) {}

  /// `is_last`: the step's last micro-batch, so reductions may start. Idle micro-batches walk the
  /// units too.
  PassResult train(const MicroBatch& batch, uint32_t index, bool is_last,
                   const Objective& objective, PassSeconds& seconds);
  /// Loss alone; multi-token prediction is left out.
  PassResult evaluate(const MicroBatch& batch, uint32_t index);

 private:
  struct Training;  // what the forward of a micro-batch leaves for its backward
  at::Tensor forward(const MicroBatch& batch, const Pass& pass, uint32_t index, Training* training);
  void predict(const Pass& pass, uint32_t index, Training& training);
  PassResult backward(const MicroBatch& batch, const Pass& pass, uint32_t index, uint32_t flags,
                      Training& training);
  PassResult head_backward(const MicroBatch& batch, const Pass& pass, uint32_t index,
                           uint32_t flags, Training& training);
  void predict_backward(const Pass& pass, uint32_t index, uint32_t flags, Training& training);
  void walk_idle(uint32_t index, bool is_last);
  void evaluate_idle(uint32_t index);

  Model& model_;
  Binder& binder_;
  Events& events_;
  Settings settings_;
};

}  // namespace ciuic::core
