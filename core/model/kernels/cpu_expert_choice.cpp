// SPDX-License-Identifier: MIT
// The router's rule on the CPU: one pass over a token's logits, selection by repeated maximum (K is
// small).
//
// Chosen experts and dropped groups are flagged rather than overwritten by a low score, so that
// whatever the scores are (huge biases, infinities, NaN) every token gets K different experts of
// kept groups.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "core/model/kernels/cpu_loops.h"
#include "core/model/kernels/expert_choice.h"

namespace ciuic::core::kernels::cpu {
namespace {

// Index of the largest value that is not taken; the lowest among equals.
template <typename A>
int64_t best_free(const A* values, const uint8_t* taken, int64_t count) {
  int64_t best = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (taken[i] == 0 && (best < 0 || values[i] > values[best])) {
      best = i;
    }
  }
  return best;
}

template <typename A>
A sum_of_two_largest(const A* values, int64_t count) {
  A first = values[0];
  A second = values[1];
  if (second > first) {
    std::swap(first, second);
  }
  for (int64_t i = 2; i < count; ++i) {
    if (values[i] > first) {
      second = first;
      first = values[i];
    } else if (values[i] > second) {
      second = values[i];
    }
  }
  return first + second;
}

// Working space of one thread, for one token at a time.
template <typename A>
struct Scratch {
  explicit Scratch(const RouterRule& rule)
      : scores(rule.num_experts),
        choice(rule.num_experts),
        groups(rule.num_groups),
        taken(rule.num_experts),
        taken_groups(rule.num_groups) {}
  std::vector<A> scores, choice, groups;
  std::vector<uint8_t> taken, taken_groups;
};

template <typename A>
A largest(const A* values, int64_t count) {
  return *std::max_element(values, values + count);
}

// Flags the experts of all groups but the best.
template <typename A>
void drop_groups(const RouterRule& rule, Scratch<A>& s) {
  const int64_t size = rule.num_experts / rule.num_groups;
  for (int64_t group = 0; group < rule.num_groups; ++group) {
    const A* choice = s.choice.data() + group * size;
    s.groups[group] =
        rule.judges_groups_by_two ? sum_of_two_largest(choice, size) : largest(choice, size);
    s.taken_groups[group] = 0;
  }
  std::fill(s.taken.begin(), s.taken.end(), uint8_t{1});
  for (int64_t i = 0; i < rule.num_kept_groups; ++i) {
    const int64_t group = best_free(s.groups.data(), s.taken_groups.data(), rule.num_groups);
    s.taken_groups[group] = 1;
    std::fill_n(s.taken.begin() + group * size, size, uint8_t{0});
  }
}

template <typename A>
void softmax(const A* logits, int64_t count, A* scores) {
  const A top = largest(logits, count);
  A sum = 0;
  for (int64_t e = 0; e < count; ++e) {
    scores[e] = exponential(logits[e] - top);
    sum += scores[e];
  }
  for (int64_t e = 0; e < count; ++e) {
    scores[e] /= sum;
  }
}

template <typename A>
void choose(const RouterRule& rule, const A* logits, const float* bias, Scratch<A>& s,
            int32_t* experts, A* scores, A* weights) {
  if (rule.is_softmax) {
    softmax(logits, rule.num_experts, s.scores.data());
  } else {
    for (int64_t e = 0; e < rule.num_experts; ++e) {
      s.scores[e] = sigmoid(logits[e]);
    }
  }
  for (int64_t e = 0; e < rule.num_experts; ++e) {
    s.choice[e] = s.scores[e] + static_cast<A>(bias[e]);
  }
  if (rule.limits_groups) {
    drop_groups(rule, s);
  } else {
    std::fill(s.taken.begin(), s.taken.end(), uint8_t{0});
  }
  A sum = 0;
  for (int64_t k = 0; k < rule.num_chosen; ++k) {
    const int64_t expert = best_free(s.choice.data(), s.taken.data(), rule.num_experts);
    s.taken[expert] = 1;
    experts[k] = static_cast<int32_t>(expert);
    scores[k] = s.scores[expert];
    sum += scores[k];
  }
  const A factor =
      static_cast<A>(rule.scaling) * (rule.normalizes ? A(1) / (sum + A(1e-20)) : A(1));
  for (int64_t k = 0; k < rule.num_chosen; ++k) {
    weights[k] = scores[k] * factor;
  }
}

template <typename A>
void choose_backward(const RouterRule& rule, const int32_t* experts, const A* s, const A* all,
                     const A* dweights, A* dlogits) {
  A inverse = 1;
  A mean = 0;
  if (rule.normalizes) {
    A sum = 0;
    A dot = 0;
    for (int64_t k = 0; k < rule.num_chosen; ++k) {
      sum += s[k];
      dot += s[k] * dweights[k];
    }
    inverse = A(1) / (sum + A(1e-20));
    mean = dot * inverse;
  }
  A dot = 0;
  for (int64_t k = 0; k < rule.num_chosen; ++k) {
    const A ds = static_cast<A>(rule.scaling) * (dweights[k] - mean) * inverse;
    dlogits[experts[k]] = ds * s[k] * (rule.is_softmax ? A(1) : A(1) - s[k]);
    dot += ds * s[k];
  }
  for (int64_t e = 0; rule.is_softmax && e < rule.num_experts; ++e) {
    dlogits[e] -= dot * all[e];
  }
}

}  // namespace

Routing choose_experts(const RouterRule& rule, const at::Tensor& logits_NE,
                       const at::Tensor& bias_E, bool keeps_scores) {
  const int64_t tokens = logits_NE.size(0);
  const int64_t k = rule.num_chosen;
  Routing out{at::empty({tokens, k}, logits_NE.options().dtype(at::kInt)),
              at::empty({tokens, k}, logits_NE.options()),
              at::empty({tokens, k}, logits_NE.options()),
              keeps_scores ? at::empty(logits_NE.sizes(), logits_NE.options()) : at::Tensor(),
              {},
              {}};
  const float* bias = bias_E.const_data_ptr<float>();
  with_dtype(logits_NE.scalar_type(), [&](auto tag) {
    using A = Accumulate<decltype(tag)>;
    const A* logits = logits_NE.const_data_ptr<A>();
    int32_t* experts = out.experts_NK.mutable_data_ptr<int32_t>();
    A* scores = out.scores_NK.mutable_data_ptr<A>();
    A* weights = out.weights_NK.mutable_data_ptr<A>();
    A* all = keeps_scores ? out.scores_NE.mutable_data_ptr<A>() : nullptr;
    parallel_rows(tokens, rule.num_experts * (k + 4), [&](int64_t begin, int64_t end) {
      Scratch<A> scratch(rule);
      for (int64_t n = begin; n < end; ++n) {
        choose<A>(rule, logits + n * rule.num_experts, bias, scratch, experts + n * k,
                  scores + n * k, weights + n * k);
        if (all != nullptr) {
          std::copy(scratch.scores.begin(), scratch.scores.end(), all + n * rule.num_experts);
        }
      }
    });
  });
  return out;
}

at::Tensor choose_experts_backward(const RouterRule& rule, const Routing& routing,
                                   const at::Tensor& dweights_NK) {
  const int64_t tokens = dweights_NK.size(0);
  const int64_t k = rule.num_chosen;
  at::Tensor out = at::zeros({tokens, rule.num_experts}, dweights_NK.options());
  with_dtype(dweights_NK.scalar_type(), [&](auto tag) {
    using A = Accumulate<decltype(tag)>;
    const int32_t* experts = routing.experts_NK.const_data_ptr<int32_t>();
    const A* scores = routing.scores_NK.const_data_ptr<A>();
    const A* dweights = dweights_NK.const_data_ptr<A>();
    const A* all = rule.is_softmax ? routing.scores_NE.const_data_ptr<A>() : nullptr;
    A* dlogits = out.mutable_data_ptr<A>();
    for (int64_t n = 0; n < tokens; ++n) {
      choose_backward<A>(rule, experts + n * k, scores + n * k,
                         all != nullptr ? all + n * rule.num_experts : nullptr, dweights + n * k,
                         dlogits + n * rule.num_experts);
    }
  });
  return out;
}

}  // namespace ciuic::core::kernels::cpu
