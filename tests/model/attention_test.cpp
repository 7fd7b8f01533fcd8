// SPDX-License-Identifier: MIT
// The paths of causal attention against each other, over lengths that fill blocks, end inside them,
// and are shorter.
#include "core/model/attention.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <gtest/gtest.h>

#include "core/model/kernels/blocked_attention.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

struct Case {
  int64_t batch, tokens, heads, key_dim, value_dim;
  int64_t document = 0;  // tokens of each in a row; 0: whole rows
};

Rows rows_of(const Case& c) {
  if (c.document == 0) {
    return whole_rows(c.batch, c.tokens);
  }
  const at::Tensor index = at::arange(c.tokens, at::kInt);
  return document_rows(index.sub(index.remainder(c.document)).repeat({c.batch, 1}));
}

struct Outcome {
  at::Tensor out, dq, dk, dv;
};

Outcome run(AttentionPath path, const Case& c, at::ScalarType dtype) {
  const at::Tensor q = normal("q", {c.batch, c.tokens, c.heads, c.key_dim}, 1.0, dtype);
  const at::Tensor k = normal("k", {c.batch, c.tokens, c.heads, c.key_dim}, 1.0, dtype);
  // Values lie behind the position-free keys in one tensor, as MLA leaves them.
  const at::Tensor kv = normal("kv", {c.batch, c.tokens, c.heads, 3 + c.value_dim}, 1.0, dtype);
  const at::Tensor dout = normal("dout", {c.batch, c.tokens, c.heads, c.value_dim}, 1.0, dtype);
  AttentionTape tape;
  const Rows rows = rows_of(c);
  const AttentionRule rule{rows, 1.0 / std::sqrt(static_cast<double>(c.key_dim))};
  const at::Tensor out = attention_forward(path, q, k, kv.narrow(3, 3, c.value_dim), rule, &tape);
  EXPECT_TRUE(out.is_contiguous());
  const at::Tensor dkv = normal("dkv", kv.sizes().vec(), 1.0, dtype);
  const at::Tensor dv = dkv.narrow(3, 3, c.value_dim);
  const AttentionGradient g = attention_backward(path, dout, tape, rule, dv);
  EXPECT_FALSE(tape.q_BTHd.defined());
  EXPECT_TRUE(
      same_bits(dkv.narrow(3, 0, 3), normal("dkv", kv.sizes().vec(), 1.0, dtype).narrow(3, 0, 3)));
  return {out, g.dq_BTHd, g.dk_BTHd, dv};
}

class Attention : public ::testing::TestWithParam<Case> {};

void expect_close(const Outcome& a, const Outcome& b, double tolerance) {
  EXPECT_LT(relative_error(a.out, b.out), tolerance);
  EXPECT_LT(relative_error(a.dq, b.dq), tolerance);
  EXPECT_LT(relative_error(a.dk, b.dk), tolerance);
  EXPECT_LT(relative_error(a.dv, b.dv), tolerance);
}

TEST_P(Attention, PathsAgree) {
  // Softmax and sums in another order: some 10 units in the last place.
  for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-13},
                                         {at::kFloat, 2e-6},
                                         {at::kBFloat16, 2e-2},
                                         {at::kHalf, 3e-3}}) {
    const Outcome plain = run(AttentionPath::Reference, GetParam(), dtype);
    if (kernels::has_blocked_attention(dtype)) {
      const Outcome blocked = run(AttentionPath::Blocked, GetParam(), dtype);
      expect_close(blocked, plain, tolerance);
      const Outcome again = run(AttentionPath::Blocked, GetParam(), dtype);
      EXPECT_TRUE(same_bits(blocked.out, again.out) && same_bits(blocked.dq, again.dq));
      EXPECT_TRUE(same_bits(blocked.dk, again.dk) && same_bits(blocked.dv, again.dv));
    }
    expect_close(run(AttentionPath::Fused, GetParam(), dtype), plain, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attention,
                         ::testing::Values(Case{1, 1, 1, 4, 4}, Case{2, 7, 3, 12, 6},
                                           Case{1, 64, 2, 48, 32}, Case{2, 129, 2, 24, 16},
                                           Case{1, 300, 1, 16, 24}, Case{2, 40, 2, 12, 6, 7},
                                           Case{1, 300, 2, 16, 11, 130}));

// Documents in one row give what each gives in a row of its own: to the bit in the blocked path.
TEST(Attention, DocumentsOfARowDoNotMeet) {
  const int64_t length = 37;
  const at::Tensor q = normal("q", {1, 2 * length, 2, 12}, 1.0, at::kFloat);
  const at::Tensor k = normal("k", {1, 2 * length, 2, 12}, 1.0, at::kFloat);
  const at::Tensor v = normal("v", {1, 2 * length, 2, 6}, 1.0, at::kFloat);
  const at::Tensor index = at::arange(2 * length, at::kInt);
  const Rows packed = document_rows(index.sub(index.remainder(length)).unsqueeze(0));
  const AttentionPath path = best_attention_path(q);
  const at::Tensor out = attention_forward(path, q, k, v, {packed, 0.3}, nullptr);
  const auto as_rows = [&](const at::Tensor& x) {
    return x.view({2, length, x.size(2), x.size(3)});
  };
  const Rows whole = whole_rows(2, length);
  const at::Tensor apart =
      attention_forward(path, as_rows(q), as_rows(k), as_rows(v), {whole, 0.3}, nullptr);
  EXPECT_TRUE(same_bits(as_rows(out), apart));
}

}  // namespace
}  // namespace ciuic::core::testing
