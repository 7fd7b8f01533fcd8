// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/testing/reference_tensor.hpp>

#include "rule_driver.h"

namespace ciuic::testing {
namespace {

using ::testing::HasSubstr;

class Muon : public ::testing::Test, protected RuleDriver {
 protected:
  Muon() : RuleDriver("muon"), tensor_(host.host()) { host.offer("ciuic.tensor", tensor_.table()); }
  ~Muon() override { host.offer("ciuic.tensor", nullptr); }

  [[nodiscard]] int64_t granule_of(const PluginInstance& muon, Operand& o) const {
    prepare(muon, o);
    int64_t granule = 0;
    muon.check(muon.table<ciuic_optimizer_vt>().granule(muon.self(), &o.param, &granule));
    return granule;
  }

 private:
  ReferenceTensor tensor_;
};

/// Row-major, in fp64.
struct Matrix {
  int64_t rows, columns;
  std::vector<double> x;

  [[nodiscard]] double at(int64_t i, int64_t j) const {
    return x[static_cast<size_t>(i * columns + j)];
  }
};

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out{a.rows, b.columns, std::vector<double>(static_cast<size_t>(a.rows * b.columns))};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) {
        out.x[static_cast<size_t>(i * b.columns + j)] += a.at(i, k) * b.at(k, j);
      }
    }
  }
  return out;
}

Matrix transposed(const Matrix& a) {
  Matrix out{a.columns, a.rows, std::vector<double>(a.x.size())};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      out.x[static_cast<size_t>(j * a.rows + i)] = a.at(i, j);
    }
  }
  return out;
}

double norm_of(const Matrix& a) {
  double squares = 0;
  for (const double x : a.x) {
    squares += x * x;
  }
  return std::sqrt(squares);
}

/// Five Newton-Schulz iterations as published, from the left whatever the shape.
Matrix newton_schulz(Matrix x) {
  const double norm = norm_of(x) + 1e-7;
  for (double& v : x.x) {
    v /= norm;
  }
  for (int i = 0; i < 5; ++i) {
    const Matrix a = product(x, transposed(x));
    const Matrix aa = product(a, a);
    Matrix b = a;
    for (size_t k = 0; k < b.x.size(); ++k) {
      b.x[k] = -4.7750 * a.x[k] + 2.0315 * aa.x[k];
    }
    const Matrix bx = product(b, x);
    for (size_t k = 0; k < x.x.size(); ++k) {
      x.x[k] = 3.4445 * x.x[k] + bx.x[k];
    }
  }
  return x;
}

TEST_F(Muon, FollowsTheFormulaInDouble) {
  // fp32 products of a well-conditioned start: the iterations take errors of small singular values
  // up by at most 3.4445^5 = 485, of which each is some units of 2^-24.
  constexpr double kTolerance = 2e-4;
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{24, 40}, {40, 24}, {16, 16}, {1, 9}}) {
    for (const bool nesterov : {true, false}) {
      const PluginInstance muon = make({{"nesterov", nesterov}, {"weight_decay", 0.2}});
      Operand o(rows, columns, "model.layers.0.mlp.up_proj.weight");
      o.value = random_values(o.value.size(), 1);
      std::vector<double> value(o.value.begin(), o.value.end());
      Matrix mean{rows, columns, std::vector<double>(value.size())};
      for (uint64_t t = 1; t <= 3; ++t) {
        o.grad = random_values(o.grad.size(), static_cast<uint32_t>(t) + 10);
        const Step step{t, 0.02, 0.5, 0.25};
        update(muon, o, step);
        Matrix direction = mean;
        for (size_t i = 0; i < value.size(); ++i) {
          const double g = o.grad[i] * 0.25;
          mean.x[i] = 0.95 * mean.x[i] + 0.05 * g;
          direction.x[i] = nesterov ? 0.05 * g + 0.95 * mean.x[i] : mean.x[i];
        }
        const Matrix orthogonal = newton_schulz(direction);
        const double size = 0.02 * 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
        for (size_t i = 0; i < value.size(); ++i) {
          value[i] = value[i] * (1 - 0.02 * 0.2 * 0.5) - size * orthogonal.x[i];
        }
      }
      for (size_t i = 0; i < value.size(); ++i) {
        ASSERT_NEAR(o.value[i], value[i], kTolerance) << rows << " x " << columns << " at " << i;
      }
    }
  }
}

/// u^T u is near the identity: every singular value is near 1, as its columns' lengths show, and the
/// root mean square of the update is 0.2 lr.
TEST_F(Muon, UpdatesAreOrthogonalAndOfAdamWsSize) {
  const int64_t rows = 64;
  const int64_t columns = 16;
  Operand o(rows, columns, "w");
  o.grad = random_values(o.grad.size(), 3);
  for (float& g : o.grad) {
    g *= 1e-3F;  // the size of gradients does not matter
  }
  update(make({{"weight_decay", 0.0}}), o, {1, 1.0});
  Matrix u{rows, columns, {o.value.begin(), o.value.end()}};
  const double size = 0.2 * std::sqrt(static_cast<double>(rows));
  for (double& x : u.x) {
    x /= size;
  }
  const Matrix gram = product(transposed(u), u);
  for (int64_t i = 0; i < columns; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      EXPECT_NEAR(gram.at(i, j), i == j ? 1.0 : 0.0, i == j ? 0.5 : 0.3) << i << " " << j;
    }
  }
  const double root_mean_square =
      norm_of(u) * size / std::sqrt(static_cast<double>(rows * columns));
  EXPECT_NEAR(root_mean_square, 0.2, 0.04);
}

TEST_F(Muon, AsksForWholeMatrices) {
  const PluginInstance muon = make();
  Operand matrix(8, 6, "model.layers.0.self_attn.o_proj.weight");
  EXPECT_EQ(granule_of(muon, matrix), 48);
  EXPECT_EQ(matrix.state.size(), 1U);
  for (const char* name :
       {"model.embed_tokens.weight", "lm_head.weight", "model.layers.3.mlp.gate.weight"}) {
    Operand other(8, 6, name);
    EXPECT_EQ(granule_of(muon, other), 1) << name;
    EXPECT_EQ(other.state.size(), 2U) << name;
  }
  Operand vector(size_t{48}, "model.norm.weight");
  EXPECT_EQ(granule_of(muon, vector), 1);
  Operand listed(8, 6, "model.layers.0.self_attn.o_proj.weight");
  EXPECT_EQ(granule_of(make({{"adamw", std::vector<std::string>{"*o_proj*"}}}), listed), 1);
}

TEST_F(Muon, RefusesAPartByName) {
  Operand o(8, 6, "model.layers.0.self_attn.o_proj.weight");
  const PluginInstance muon = make();
  const std::vector<float> before = o.value;
  const Error e = error_of([&] { update(muon, o, {1}, 0, 24); });
  EXPECT_EQ(e.code(), CIUIC_INVALID);
  EXPECT_STREQ(
      e.what(),
      "optimizer muon: model.layers.0.self_attn.o_proj.weight: got elements 0 to 24 of 48, "
      "expected the whole matrix: its granule is all of it");
  EXPECT_EQ(o.value, before);
  update(muon, o, {1}, 48, 48);  // a rank whose share of the matrix is empty
  EXPECT_EQ(o.value, before);
}

TEST_F(Muon, RefusesAMatrixThatIsSplitOverRanks) {
  Operand o(8, 6, "model.layers.0.self_attn.o_proj.weight");
  const PluginInstance muon = make();
  prepare(muon, o);
  const std::array<int64_t, 2> global{16, 6};
  o.param.global_shape = global.data();
  int64_t granule = 0;
  const Error e = error_of([&] {
    muon.check(muon.table<ciuic_optimizer_vt>().granule(muon.self(), &o.param, &granule));
  });
  EXPECT_EQ(e.code(), CIUIC_UNIMPLEMENTED);
  EXPECT_THAT(e.what(), HasSubstr("8 of 16 in dimension 0"));
}

TEST_F(Muon, TheRestIsAdamW) {
  const RuleDriver adamw("adamw");
  Operand a(8, 6, "model.embed_tokens.weight");
  a.value = random_values(48, 1);
  Operand b = a;
  const PluginInstance muon = make();
  const PluginInstance reference = adamw.make();
  for (uint64_t t = 1; t <= 3; ++t) {
    a.grad = b.grad = random_values(48, static_cast<uint32_t>(t));
    update(muon, a, {t});
    update(reference, b, {t});
  }
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.state, b.state);
}

TEST_F(Muon, AZeroGradientOnlyDecays) {
  Operand o(4, 4, "w");
  std::fill(o.value.begin(), o.value.end(), 1.0F);
  update(make(), o, {1, 0.5});
  for (const float x : o.value) {
    EXPECT_FLOAT_EQ(x, 0.95F);
  }
}

TEST_F(Muon, WritesTheNarrowCopy) {
  Operand o(16, 16, "w");
  o.value = random_values(256, 1);
  o.grad = random_values(256, 2);
  o.copy.resize(256);
  update(make(), o, {1, 0.1});
  for (size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(o.copy[i], float_to_bf16(o.value[i]));
  }
}

TEST_F(Muon, SaysWhichServiceIsMissing) {
  host.offer("ciuic.tensor", nullptr);
  Operand o(4, 4, "w");
  const PluginInstance muon = make();
  const Error e = error_of([&] { update(muon, o, {1}); });
  EXPECT_EQ(e.code(), CIUIC_PRECONDITION);
  EXPECT_THAT(e.what(), HasSubstr("ciuic.tensor"));
}

}  // namespace
}  // namespace ciuic::testing
