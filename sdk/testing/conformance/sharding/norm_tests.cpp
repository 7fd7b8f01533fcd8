// SPDX-License-Identifier: MIT
//
// grad_stats: one norm for all ranks that counts each logical element once, and who is to blame when
// it is not finite.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <ciuic/testing/features.hpp>

#include "sharding_tables.h"
#include "steps.h"

namespace ciuic::testing {
namespace {

/// Collects one answer a rank and requires them equal, bit for bit.
class Answers {
 public:
  explicit Answers(int world) : all_(static_cast<size_t>(world)) {}
  void put(const StepDriver& d, const ciuic_grad_stats& s) {
    all_[static_cast<size_t>(d.rank().rank())] = s;
  }
  void require_equal(const std::string& when) const {
    for (size_t r = 1; r < all_.size(); ++r) {
      const ciuic_grad_stats& a = all_[0];
      const ciuic_grad_stats& b = all_[r];
      const bool is_same =
          (a.non_finite > 0 || std::memcmp(&a.norm, &b.norm, sizeof(a.norm)) == 0) &&
          a.non_finite == b.non_finite && a.first_bad_param == b.first_bad_param &&
          a.first_bad_rank == b.first_bad_rank;
      require(is_same, when + ": rank " + std::to_string(r) + " heard norm " +
                           std::to_string(b.norm) + ", " + std::to_string(b.non_finite) +
                           " non-finite; rank 0 norm " + std::to_string(a.norm) + ", " +
                           std::to_string(a.non_finite) + ": grad_stats is the same on all ranks");
    }
  }

 private:
  std::vector<ciuic_grad_stats> all_;
};

void counts_once(const TestContext& context) {
  for (const int world : {1, 2, 3, 4}) {
    Training training(context.seed);
    training.model[TwoLayerNet::kBias1].flags &= ~uint32_t{CIUIC_PARAM_IN_NORM};
    const UnshardedNet<float> net(training);
    const double expected = norm_of(training.model, net.gradients(1));
    Answers answers(world);
    drive(context, world, training.model, [&](StepDriver& d) {
      run_passes(d, training, 1);
      const ciuic_grad_stats s = d.stats();
      answers.put(d, s);
      require(s.non_finite == 0 && s.first_bad_param == ~uint64_t{0},
              "a finite gradient: non_finite " + std::to_string(s.non_finite) +
                  ", first_bad_param " + std::to_string(s.first_bad_param) +
                  "; expected 0 and all bits set");
      require_near(s.norm, expected, kNormBound,
                   "the norm on " + std::to_string(world) +
                       " ranks of a net with a tied head and a bias outside the norm");
    });
    answers.require_equal("a finite gradient");
  }
}

void scales(const TestContext& context) {
  drive(context, 2, small_model(), [&](StepDriver& d) {
    d.run_backward([](uint64_t, int64_t) { return 2.0; });
    const double whole = 4 * std::sqrt(74.0);  // 74 elements, the sum of two ranks is 4
    require_near(d.stats(1.0 / 4).norm, whole / 4, kNormBound, "the norm with grad_scale 1/4");
    require_near(d.stats(3).norm, whole * 3, kNormBound, "the norm with grad_scale 3, asked again");
    d.step(rule_step(1), CIUIC_UPDATE_SKIP);
  });
}

void other_norms(const TestContext& context) {
  drive(context, 2, small_model(), [&](StepDriver& d) {
    d.run_backward([&](uint64_t param, int64_t i) {
      return param == 2 && i == 3 && d.rank().rank() == 0 ? -9.0 : 1.0;
    });
    // 73 elements of 2 and one of -8.
    const auto check = [&](uint32_t norm, double expected, const char* what) {
      ciuic_grad_stats s{};
      const int32_t code = d.code_of(d.try_stats(0.5, norm, s));
      require(code == CIUIC_OK || code == CIUIC_UNIMPLEMENTED,
              std::string(what) + ": " + code_name(code) +
                  "; a norm that a plugin cannot give is UNIMPLEMENTED");
      if (code == CIUIC_OK) {
        require_near(s.norm, expected, kNormBound, what);
      }
    };
    check(CIUIC_NORM_L1, (73 * 2 + 8) * 0.5, "the L1 norm");
    check(CIUIC_NORM_MAX, 4, "the largest magnitude");
    ciuic_grad_stats s{};
    const int32_t code = d.code_of(d.try_stats(1, 77, s));
    require(
        code == CIUIC_UNIMPLEMENTED,
        "norm 77 does not exist: got " + std::string(code_name(code)) + ", expected not supported");
    d.step(rule_step(1), CIUIC_UPDATE_SKIP);
  });
}

/// A partition of the parameters: the squares of the norms of its parts add up.
void of_some_parameters(const TestContext& context) {
  if (!has_feature(context.plugin.descriptor(), "norm:params")) {
    throw NotOffered("the plugin does not say that it is norm:params");
  }
  drive(context, 2, small_model(), [&](StepDriver& d) {
    d.run_backward([&](uint64_t param, int64_t) { return 1.0 + static_cast<double>(param); });
    const auto square_of = [&](const std::vector<int64_t>& params, const int64_t* data) {
      ciuic_grad_stats s{};
      d.check(d.try_stats(0.5, CIUIC_NORM_L2, data, static_cast<uint32_t>(params.size()), s));
      return s.norm * s.norm;
    };
    std::vector<std::vector<int64_t>> parts(2);
    for (size_t p = 0; p < small_model().size(); ++p) {
      parts[p % 2].push_back(static_cast<int64_t>(p));
    }
    const double even = square_of(parts[0], parts[0].data());
    const double odd = square_of(parts[1], parts[1].data());
    const double whole = d.stats(0.5).norm;
    require(even > 0 && odd > 0 && even < whole * whole,
            "squares of the norms of parameters 0, 2, ... and 1, 3, ...: " + std::to_string(even) +
                " and " + std::to_string(odd) + " of " + std::to_string(whole * whole));
    require_near(std::sqrt(even + odd), whole, kNormBound, "two parts of the gradient together");
    const std::vector<int64_t> none;
    const int64_t nothing = -1;
    require(square_of(none, &nothing) == 0, "the norm of no parameters is 0");
    d.step(rule_step(1), CIUIC_UPDATE_SKIP);
  });
}

/// Two different experts on two pairs of ranks, a replica that counts elsewhere.
void experts(const TestContext& context) {
  RankGroup ranks(4);
  ranks.add_group("expert_data", {{0, 2}, {1, 3}});
  Model model{{"dense", {3}, 0}, {"replica", {5}, 0}, {"expert", {2}, 1}};
  model[1].flags = CIUIC_PARAM_REPLICATED;  // counted on another model-parallel rank
  model[2].flags = CIUIC_PARAM_IN_NORM | CIUIC_PARAM_EXPERT;
  model[2].group = "expert_data";
  Answers answers(4);
  drive(context, ranks, model, [&](StepDriver& d) {
    d.run_backward([](uint64_t, int64_t) { return 1.0; });
    const ciuic_grad_stats s = d.stats();
    answers.put(d, s);
    require_near(s.norm, std::sqrt(3 * 16 + 2 * 2 * 4), kNormBound,
                 "3 dense elements of 4, and 2 elements of 2 of each of two experts");
    d.step(rule_step(1), CIUIC_UPDATE_SKIP);
  });
  answers.require_equal("a model with experts");
}

void experts_alone(const TestContext& context) {
  RankGroup ranks(2);
  ranks.add_group("expert_data", {{0}, {1}});
  Model model{{"expert", {2}, 0}};
  model[0].flags = CIUIC_PARAM_IN_NORM | CIUIC_PARAM_EXPERT;
  model[0].group = "expert_data";
  Answers answers(2);
  drive(context, ranks, model, [&](StepDriver& d) {
    d.run_backward([&](uint64_t, int64_t i) {
      return d.rank().rank() == 0 ? (i == 0 ? 2.0 : 4.0) : (i == 0 ? 6.0 : 8.0);
    });
    const ciuic_grad_stats s = d.stats();
    answers.put(d, s);
    require_near(s.norm, std::sqrt(120.0), kNormBound,
                 "experts that each rank holds alone, squares 20 and 100");
    d.step(rule_step(1), CIUIC_UPDATE_SKIP);
  });
  answers.require_equal("experts that each rank holds alone");
}

void names_non_finite(const TestContext& context) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const int culprit : {0, 2}) {
      Answers answers(3);
      const Model model = small_model();
      drive(context, 3, model, [&](StepDriver& d) {
        d.run_backward([&](uint64_t param, int64_t i) {
          return d.rank().rank() == culprit && param == 4 && i == 11 ? bad : 1.0;
        });
        const ciuic_grad_stats s = d.stats();
        answers.put(d, s);
        const std::string when = "rank " + std::to_string(culprit) + " wrote " +
                                 std::to_string(bad) + " to one element of parameter 4: ";
        require(s.non_finite == 1,
                when + "non_finite is " + std::to_string(s.non_finite) + ", expected 1");
        require(s.first_bad_param == 4,
                when + "first_bad_param is " + std::to_string(s.first_bad_param));
        require(s.first_bad_rank == culprit || s.first_bad_rank == -1,
                when + "first_bad_rank is " + std::to_string(s.first_bad_rank) +
                    ", expected that rank, or -1 where nobody can tell");
        d.step(rule_step(1), CIUIC_UPDATE_SKIP);
        d.run_backward([](uint64_t, int64_t) { return 1.0; });
        require_norm(d, 3 * std::sqrt(74.0), "the step after a skipped one");
        d.step(rule_step(1), CIUIC_UPDATE_SKIP);
      });
      answers.require_equal("a non-finite gradient");
    }
  }
}

void skip_changes_nothing(const TestContext& context) {
  const Model model = small_model();
  MemoryState end;
  drive(
      context, 2, model,
      [&](StepDriver& d) {
        d.run_backward([](uint64_t, int64_t) { return 1e9; });
        (void)d.stats();
        d.step(rule_step(1), CIUIC_UPDATE_SKIP);
        require(d.optimizer().take_seen().empty(),
                "a step with CIUIC_UPDATE_SKIP called the optimizer");
        d.run_backward(whole_gradient);
        (void)d.stats();
        d.step(rule_step(1));
        d.run_backward([](uint64_t, int64_t) { return -1e9; });
        (void)d.stats();
        d.step(rule_step(2), CIUIC_UPDATE_SKIP);
      },
      &end);
  const GradientOf twice = [](uint64_t p, int64_t i) { return 2 * whole_gradient(p, i); };
  require_updated(end, model, {twice}, "one update between two skipped steps");
}

}  // namespace

TestTable sharding_norm_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.norm.once", 3, kKind, 60,
       "the norm counts each logical element once: tied, frozen, IN_NORM; equal on all ranks",
       counts_once},
      {"sharding.norm.scale", 3, kKind, 30, "the norm is taken after grad_scale, each time asked",
       scales},
      {"sharding.norm.kinds", 3, kKind, 30,
       "L1 and MAX are right or UNIMPLEMENTED; an unknown norm is UNIMPLEMENTED", other_norms},
      {"sharding.norm.params", 3, kKind, 30,
       "norm:params: the norm of chosen parameters; those of a partition add up",
       of_some_parameters},
      {"sharding.norm.experts", 3, kKind, 30,
       "experts in smaller groups count once each, replicas where IN_NORM says", experts},
      {"sharding.norm.experts_alone", 3, kKind, 30, "experts without a replica count once each",
       experts_alone},
      {"sharding.norm.non_finite", 3, kKind, 60,
       "a non-finite element is counted and its parameter and rank named, on all ranks",
       names_non_finite},
      {"sharding.step.skip", 3, kKind, 30, "SKIP drops the gradients and changes nothing else",
       skip_changes_nothing},
  };
}

}  // namespace ciuic::testing
