// SPDX-License-Identifier: MIT
#include "core/model/head.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include <ciuic/error.hpp>

#include "core/bench/step_clock.h"
#include "core/model/kernels/cross_entropy.h"
#include "core/model/kernels/rms_norm.h"
#include "core/model/linear.h"

namespace ciuic::core {
namespace {

constexpr int64_t kChunkBytes = int64_t{4} << 20;

enum Weight { kNorm, kHead };

// Targets on the host, counted and checked: an index outside the vocabulary would read past the
// logits.
int64_t count_targets(const at::Tensor& targets_N, int64_t vocab_size) {
  const at::Tensor host = targets_N.cpu();
  const auto* target = host.const_data_ptr<int64_t>();
  int64_t count = 0;
  for (int64_t n = 0; n < host.numel(); ++n) {
    if (target[n] == kIgnoredTarget) {
      continue;
    }
    if (target[n] < 0 || target[n] >= vocab_size) {
      throw Error(CIUIC_INVALID,
                  "model: target token " + std::to_string(target[n]) + " at position " +
                      std::to_string(n) + ", expected 0 to " + std::to_string(vocab_size - 1) +
                      " (vocab_size) or -100 for none; tokenizer and model do not fit");
    }
    ++count;
  }
  return count;
}

double sum_of(const at::Tensor& losses_N) { return losses_N.sum(at::kDouble).item<double>(); }

// The gradient of the head is written once and then added to: chunks after the first never
// overwrite.
Bound for_chunk(const Bound& head, bool is_first) {
  return {head.value, head.grad, head.overwrite && is_first, head.hook};
}

}  // namespace

Head::Head(const ModelConfig& config)
    : epsilon_(config.rms_norm_eps), vocab_size_(config.vocab_size) {}

int64_t Head::chunk_tokens(int64_t element_bytes) const {
  return std::max<int64_t>(64, kChunkBytes / (vocab_size_ * element_bytes) / 64 * 64);
}

// Over chunks of tokens. dhidden: of `normed`, [N, D].
HeadGradient Head::walk_backward(const Bound& head, const at::Tensor& normed_ND,
                                 const at::Tensor& targets_N, double seed) const {
  HeadGradient out{0, count_targets(targets_N, vocab_size_), at::empty_like(normed_ND)};
  const int64_t rows = normed_ND.size(0);
  const int64_t chunk = chunk_tokens(static_cast<int64_t>(normed_ND.element_size()));
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first);
    const at::Tensor normed = normed_ND.narrow(0, first, count);
    const at::Tensor logits = linear(normed, head);
    out.loss_sum +=
        sum_of(kernels::cross_entropy_backward_(logits, targets_N.narrow(0, first, count), seed));
    accumulate_product(for_chunk(head, first == 0), logits, normed);
    linear_backward_out(out.dhidden.narrow(0, first, count), logits, head);
  }
  return out;
}

HeadLoss Head::walk(const Bound& head, const at::Tensor& normed_ND,
                    const at::Tensor& targets_N) const {
  HeadLoss out{0, count_targets(targets_N, vocab_size_)};
  const int64_t chunk = chunk_tokens(static_cast<int64_t>(normed_ND.element_size()));
  for (int64_t first = 0; first < normed_ND.size(0); first += chunk) {
    const int64_t count = std::min(chunk, normed_ND.size(0) - first);
    const at::Tensor logits = linear(normed_ND.narrow(0, first, count), head);
    out.loss_sum += sum_of(kernels::cross_entropy(logits, targets_N.narrow(0, first, count)));
  }
  return out;
}

HeadGradient Head::loss_and_backward(Bindings weights, const at::Tensor& hidden,
                                     const at::Tensor& targets, double seed) const {
  const PartSpan part(Part::Loss);
  const at::Tensor x_ND = hidden.flatten(0, -2);
  const auto [normed_ND, rstd_N] = kernels::rms_norm(x_ND, weights[kNorm].value, epsilon_);
  HeadGradient out = walk_backward(weights[kHead], normed_ND, targets.flatten().contiguous(), seed);
  const at::Tensor dnormed_ND = std::exchange(out.dhidden, at::empty_like(hidden));
  accumulate(weights[kNorm],
             kernels::rms_norm_backward_out(out.dhidden.flatten(0, -2), dnormed_ND, x_ND, rstd_N,
                                            weights[kNorm].value, {}));
  return out;
}

HeadGradient Head::predicted_loss_and_backward(Bindings weights, const at::Tensor& normed,
                                               const at::Tensor& targets, double seed) const {
  const PartSpan part(Part::Loss);
  const Bound& head = weights[kHead];
  HeadGradient out = walk_backward({head.value, head.grad, /*overwrite=*/false},
                                   normed.flatten(0, -2), targets.flatten().contiguous(), seed);
  out.dhidden = out.dhidden.view_as(normed);
  return out;
}

HeadLoss Head::loss(Bindings weights, const at::Tensor& hidden, const at::Tensor& targets) const {
  const at::Tensor x_ND = hidden.flatten(0, -2);
  return walk(weights[kHead], kernels::rms_norm(x_ND, weights[kNorm].value, epsilon_).y_ND,
              targets.flatten().contiguous());
}

HeadLoss Head::predicted_loss(Bindings weights, const at::Tensor& normed,
                              const at::Tensor& targets) const {
  return walk(weights[kHead], normed.flatten(0, -2), targets.flatten().contiguous());
}

at::Tensor Head::logits(Bindings weights, const at::Tensor& hidden) const {
  const at::Tensor normed_ND =
      kernels::rms_norm(hidden.flatten(0, -2), weights[kNorm].value, epsilon_).y_ND;
  std::vector<int64_t> shape(hidden.sizes().begin(), hidden.sizes().end());
  shape.back() = vocab_size_;
  return linear(normed_ND, weights[kHead]).view(shape);
}

}  // namespace ciuic::core
