// SPDX-License-Identifier: MIT
#include "core/train/passes.h"

#include <chrono>

#include <c10/core/InferenceMode.h>

#include "core/train/stopwatch.h"

namespace ciuic::core {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

at::Tensor Passes::forward(const MicroBatch& batch, uint32_t index, std::vector<LayerTape>* tapes) {
  const Span span(events_, CIUIC_CATEGORY_FORWARD, "forward", index);
  at::Tensor hidden;
  {
    const BoundUnit unit = binder_.bind(0, CIUIC_PASS_FORWARD, index);
    hidden = model_.embed(unit.bindings(), batch.tokens);
  }
  const Mode mode = tapes != nullptr ? Mode::Train : Mode::Evaluate;
  for (int64_t u = 1; u < model_.head_unit(); ++u) {
    const BoundUnit unit = binder_.bind(u, CIUIC_PASS_FORWARD, index);
    LayerTape* tape = tapes != nullptr ? &(*tapes)[static_cast<size_t>(u)] : nullptr;
    hidden = model_.forward(u, unit.bindings(), hidden, tape, mode);
  }
  return hidden;
}

PassResult Passes::backward(const MicroBatch& batch, at::Tensor hidden, uint32_t index,
                            uint32_t flags, double seed, std::vector<LayerTape>& tapes) {
  const Span span(events_, CIUIC_CATEGORY_BACKWARD, "backward", index);
  PassResult result;
  at::Tensor dhidden;
  {
    // The head's forward and backward are one bind: its logits live for a chunk of tokens only.
    const BoundUnit unit = binder_.bind(model_.head_unit(), CIUIC_PASS_BACKWARD, index, flags);
    HeadGradient head = model_.head_loss_and_backward(unit.bindings(), hidden, batch.targets, seed);
    unit.grad_ready();
    result = {head.loss_sum, head.num_tokens};
    dhidden = std::move(head.dhidden);
  }
  hidden.reset();
  for (int64_t u = model_.head_unit() - 1; u > 0; --u) {
    const BoundUnit unit = binder_.bind(u, CIUIC_PASS_BACKWARD, index, flags);
    dhidden = model_.backward(u, unit.bindings(), dhidden, tapes[static_cast<size_t>(u)]);
    unit.grad_ready();
  }
  const BoundUnit unit = binder_.bind(0, CIUIC_PASS_BACKWARD, index, flags);
  model_.embed_backward(unit.bindings(), batch.tokens, dhidden);
  unit.grad_ready();
  return result;
}

void Passes::walk_idle(uint32_t index, bool is_last) {
  const uint32_t flags = CIUIC_USE_IDLE | (is_last ? uint32_t{CIUIC_USE_LAST_GRAD} : 0u);
  for (int64_t u = 0; u < model_.head_unit(); ++u) {
    const BoundUnit unit = binder_.bind(u, CIUIC_PASS_FORWARD, index, CIUIC_USE_IDLE);
  }
  for (int64_t u = model_.head_unit(); u >= 0; --u) {
    const BoundUnit unit = binder_.bind(u, CIUIC_PASS_BACKWARD, index, flags);
    unit.grad_ready();
  }
}

PassResult Passes::train(const MicroBatch& batch, uint32_t index, bool is_last, double seed,
                         PassSeconds& seconds) {
  const c10::InferenceMode no_autograd;
  if (batch.is_idle()) {
    walk_idle(index, is_last);
    return {};
  }
  std::vector<LayerTape> tapes(static_cast<size_t>(model_.num_units()));
  auto begin = Clock::now();
  at::Tensor hidden = forward(batch, index, &tapes);
  seconds.forward += seconds_since(begin);
  begin = Clock::now();
  const PassResult result = backward(batch, std::move(hidden), index,
                                     is_last ? uint32_t{CIUIC_USE_LAST_GRAD} : 0u, seed, tapes);
  seconds.backward += seconds_since(begin);
  return result;
}

PassResult Passes::evaluate(const MicroBatch& batch, uint32_t index) {
  const c10::InferenceMode no_autograd;
  if (batch.is_idle()) {
    for (int64_t u = 0; u < model_.num_units(); ++u) {
      const BoundUnit unit = binder_.bind(u, CIUIC_PASS_FORWARD, index, CIUIC_USE_IDLE);
    }
    return {};
  }
  const at::Tensor hidden = forward(batch, index, nullptr);
  const BoundUnit unit = binder_.bind(model_.head_unit(), CIUIC_PASS_FORWARD, index);
  const HeadLoss loss = model_.head_loss(unit.bindings(), hidden, batch.targets);
  return {loss.loss_sum, loss.num_tokens};
}

}  // namespace ciuic::core
