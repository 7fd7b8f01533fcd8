// SPDX-License-Identifier: MIT
// Products that a precision policy takes: every linear module hands out its three, experts as groups
// where memory allows it, and a policy that multiplies plainly changes nothing.
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "core/model/policy_products.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

constexpr uint32_t kAllPasses = 0b1110;
constexpr double kSumsInAnotherOrder = 1e-12;  // in f64

/// Multiplies as product.h does, and notes what it was asked for.
class PlainPolicy final : public PolicyProducts {
 public:
  void compute(const PolicyProduct& p) const override {
    asked_.insert({p.module, p.pass});
    if (!p.group_ends.defined()) {
      multiply(p.pass, p.out, p.a, p.b, p.adds);
      return;
    }
    const bool is_weight = p.pass == ProductPass::GradWeight;
    int64_t begin = 0;
    for (int64_t g = 0; g < p.group_ends.numel(); ++g) {
      const int64_t end = p.group_ends.const_data_ptr<int64_t>()[g];
      const auto rows = [&](const at::Tensor& x) { return x.narrow(0, begin, end - begin); };
      multiply(p.pass, is_weight ? p.out.select(0, g) : rows(p.out), rows(p.a),
               is_weight ? rows(p.b) : p.b.select(0, g), p.adds);
      begin = end;
    }
    EXPECT_EQ(begin, p.a.size(0));
  }

  using Asked = std::set<std::pair<uint32_t, ProductPass>>;
  [[nodiscard]] const Asked& asked() const { return asked_; }

 private:
  static void multiply(ProductPass pass, const at::Tensor& out, const at::Tensor& a,
                       const at::Tensor& b, bool adds) {
    const at::Tensor product = pass == ProductPass::Forward     ? a.matmul(b.t())
                               : pass == ProductPass::GradInput ? a.matmul(b)
                                                                : a.t().matmul(b);
    adds ? out.add_(product) : out.copy_(product);
  }
  mutable Asked asked_;
};

bool is_linear(const ParameterSpec& spec) { return spec.name.find("proj") != std::string::npos; }

/// "model.layers.1.mlp.experts.gate_proj" of any expert's; empty: no expert's.
std::string group_of(const std::string& name) {
  constexpr std::string_view kExperts = ".mlp.experts.";
  const size_t at = name.find(kExperts);
  return at == std::string::npos ? ""
                                 : name.substr(0, at + kExperts.size()) +
                                       name.substr(name.find('.', at + kExperts.size()) + 1);
}

class PrecisionProducts : public ::testing::Test {
 protected:
  /// A hook for each linear module, with its place among the parameters as its id, and ids from
  /// 10 000 on for groups.
  void hook(TestParameters& parameters, bool takes_groups) {
    std::map<std::string, const ModuleHook*> by_name;
    for (size_t i = 0; i < parameters.specs().size(); ++i) {
      const ParameterSpec& spec = parameters.specs()[i];
      if (!is_linear(spec)) {
        continue;
      }
      ModuleHook one{&policy_, static_cast<uint32_t>(i), kAllPasses};
      if (const std::string group = group_of(spec.name); takes_groups && !group.empty()) {
        const auto id = static_cast<uint32_t>(10000 + groups_.size());
        one.group_module = groups_.try_emplace(group, id).first->second;
        one.group_passes = kAllPasses;
      }
      hooks_.push_back(one);
      by_name[spec.name] = &hooks_.back();
    }
    parameters.set_hooks(std::move(by_name));
  }

  void expect_no_change(TestParameters& hooked) {
    TestParameters plain(config_, at::kDouble);
    for (const bool overwrite : {true, false}) {
      const double expected = run_step(model_, plain, tokens_, tokens_, 1, overwrite);
      EXPECT_NEAR(run_step(model_, hooked, tokens_, tokens_, 1, overwrite), expected,
                  kSumsInAnotherOrder * expected);
      for (const ParameterSpec& spec : plain.specs()) {
        EXPECT_LT(relative_error(hooked.gradient(spec.name), plain.gradient(spec.name)),
                  kSumsInAnotherOrder)
            << spec.name;
      }
    }
  }

  /// Every pass of these modules, and no other, was asked for.
  void expect_asked(const std::set<uint32_t>& modules) const {
    PlainPolicy::Asked expected;
    for (const uint32_t module : modules) {
      for (const ProductPass pass :
           {ProductPass::Forward, ProductPass::GradInput, ProductPass::GradWeight}) {
        expected.insert({module, pass});
      }
    }
    EXPECT_EQ(policy_.asked(), expected);
  }

  ModelConfig config_ = small_config();
  Model model_{config_, at::kDouble, at::kCPU};
  at::Tensor tokens_ = some_tokens(2, 60, config_.vocab_size);
  PlainPolicy policy_;
  std::deque<ModuleHook> hooks_;
  std::map<std::string, uint32_t> groups_;
};

TEST_F(PrecisionProducts, EveryLinearModuleHandsOutItsThree) {
  TestParameters parameters(config_, at::kDouble);
  hook(parameters, /*takes_groups=*/false);
  expect_no_change(parameters);
  std::set<uint32_t> modules;
  for (const ModuleHook& one : hooks_) {
    modules.insert(one.module);
  }
  expect_asked(modules);
}

TEST_F(PrecisionProducts, ExpertsComeInGroups) {
  TestParameters parameters(config_, at::kDouble);
  hook(parameters, /*takes_groups=*/true);
  expect_no_change(parameters);
  std::set<uint32_t> modules;
  for (const ModuleHook& one : hooks_) {
    modules.insert(one.group_passes != 0 ? one.group_module : one.module);
  }
  expect_asked(modules);
}

// As where a sharding keeps each parameter in memory of its own.
TEST_F(PrecisionProducts, ExpertsApartComeOneByOne) {
  TestParameters parameters(config_, at::kDouble);
  int64_t margin = 1;
  for (const ParameterSpec& spec : parameters.specs()) {
    const at::Tensor place = at::empty({spec.num_elements() + ++margin}, at::kDouble);
    parameters.move_value(spec.name, place.narrow(0, 0, spec.num_elements()).view(spec.shape));
  }
  hook(parameters, /*takes_groups=*/true);
  expect_no_change(parameters);
  const bool any = std::any_of(hooks_.begin(), hooks_.end(), [&](const ModuleHook& one) {
    return one.group_passes != 0 && policy_.asked().count({one.module, ProductPass::Forward}) != 0;
  });
  EXPECT_TRUE(any) << "an expert's own product";
}

// What a policy does not take stays where it was.
TEST_F(PrecisionProducts, OnlyTheHookedPassesAreHandedOut) {
  TestParameters parameters(config_, at::kDouble);
  hook(parameters, /*takes_groups=*/false);
  for (ModuleHook& one : hooks_) {
    one.passes = 1U << static_cast<uint32_t>(ProductPass::GradInput);
  }
  expect_no_change(parameters);
  for (const auto& [module, pass] : policy_.asked()) {
    EXPECT_EQ(pass, ProductPass::GradInput) << module;
  }
  EXPECT_EQ(policy_.asked().size(), hooks_.size());
}

}  // namespace
}  // namespace ciuic::core::testing
