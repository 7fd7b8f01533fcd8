// SPDX-License-Identifier: MIT
#include "net_training.h"

#include <cmath>
#include <memory>

namespace ciuic::testing {
namespace {

/// The samples of a micro-batch on their way through the units.
class Walk {
 public:
  Walk(StepDriver& driver, const Training& training, uint64_t step,
       const std::vector<uint64_t>& samples)
      : driver_(driver), net_(training.net) {
    for (const uint64_t s : samples) {
      tapes_.push_back(net_.sample(step, s));
    }
  }

  void forward(const ciuic_use& use) {
    const Values w(driver_.bind(use));
    for (TwoLayerNet::Tape& tape : tapes_) {
      TwoLayerNet::forward(use.unit, w.read(), tape);
    }
    driver_.drop(use);
  }
  /// A pass that leaves the weights' gradients to a later one reads values and writes nothing.
  void backward_input(const ciuic_use& use) {
    saved_[use.unit] = tapes_;
    const Values w(driver_.bind(use));
    for (TwoLayerNet::Tape& tape : tapes_) {
      net_.backward(use.unit, w.read(), tape, [](uint64_t, int64_t, double) {});
    }
    driver_.drop(use);
  }
  void backward_weight(const ciuic_use& use) {
    std::vector<TwoLayerNet::Tape> now = std::exchange(tapes_, saved_[use.unit]);
    backward(use);
    tapes_ = std::move(now);
  }
  void backward(const ciuic_use& use) {
    const ArrayView<ciuic_binding> bindings = driver_.bind(use);
    const Values w(bindings);
    std::map<uint64_t, std::vector<double>> sums;
    for (const ciuic_binding& b : bindings) {
      sums[b.param].resize(static_cast<size_t>(driver_.model()[b.param].num_elements()));
    }
    for (TwoLayerNet::Tape& tape : tapes_) {
      net_.backward(use.unit, w.read(), tape, [&](uint64_t param, int64_t i, double g) {
        sums.at(param)[static_cast<size_t>(i)] += g;
      });
    }
    for (const ciuic_binding& b : bindings) {
      if (b.grad != nullptr && !tapes_.empty()) {
        StepDriver::add_gradient(
            b, [&](uint64_t param, int64_t i) { return sums.at(param)[static_cast<size_t>(i)]; });
      }
    }
    driver_.ready(use);
    driver_.drop(use);
  }

 private:
  class Values {
   public:
    explicit Values(ArrayView<ciuic_binding> bindings) {
      for (const ciuic_binding& b : bindings) {
        by_param_[b.param] = &b;
      }
    }
    [[nodiscard]] TwoLayerNet::Read read() const {
      return [this](uint64_t param, int64_t i) {
        return StepDriver::value_at(*by_param_.at(param), i);
      };
    }

   private:
    std::map<uint64_t, const ciuic_binding*> by_param_;
  };

  StepDriver& driver_;
  const TwoLayerNet& net_;
  std::vector<TwoLayerNet::Tape> tapes_;
  std::map<uint32_t, std::vector<TwoLayerNet::Tape>> saved_;  // by unit, before its backward
};

/// Input gradients of all units, then weight gradients, as zero-bubble pipelines do.
Schedule split_backward(const Schedule& plain) {
  Schedule out;
  for (size_t i = 0; i < plain.size();) {
    if (plain[i].pass == CIUIC_PASS_FORWARD) {
      out.push_back(plain[i++]);
      continue;
    }
    const size_t first = i;
    for (; i < plain.size() && plain[i].pass == CIUIC_PASS_BACKWARD; ++i) {
      out.push_back(plain[i]);
      out.back().pass = CIUIC_PASS_BACKWARD_INPUT;
      out.back().flags &= ~uint32_t{CIUIC_USE_LAST_GRAD};
    }
    for (size_t j = first; j < i; ++j) {
      out.push_back(plain[j]);
      out.back().pass = CIUIC_PASS_BACKWARD_WEIGHT;
    }
  }
  for (uint32_t i = 0; i < out.size(); ++i) {
    out[i].index = i;
  }
  return out;
}

}  // namespace

void Training::set_type(ciuic_dtype type) {
  for (ModelParam& p : model) {
    p.value = p.grad = p.reduce = p.master = type;
  }
  moment = type;
}

RuleStep rule_step(uint64_t update) {
  return {update, 1e-2 * static_cast<double>(1 + update % 3),
          0.5 + 0.25 * static_cast<double>(update % 2), 1.0 / 16};
}

std::vector<uint64_t> samples_of(int rank, int world, uint32_t m) {
  std::vector<uint64_t> all;
  for (auto s = static_cast<uint64_t>(rank); s < kSamples; s += static_cast<uint64_t>(world)) {
    all.push_back(s);
  }
  const auto half = all.begin() + static_cast<std::ptrdiff_t>((all.size() + 1) / 2);
  return m == 0 ? std::vector<uint64_t>(all.begin(), half) : std::vector<uint64_t>(half, all.end());
}

void run_ranks(RankGroup& ranks, const std::function<void(Rank&)>& body) {
  ranks.run(body);
  for (int r = 0; r < ranks.world(); ++r) {
    const TestHost& host = ranks.rank(r).host;
    require(host.balanced(),
            "rank " + std::to_string(r) + " after destroy: " + std::to_string(host.live_bytes()) +
                " bytes and " + std::to_string(host.live_statuses()) +
                " statuses were not given back, " + std::to_string(host.memory_faults()) +
                " frees of a wrong size or writes past an end; expected none");
  }
}

void run_passes(StepDriver& driver, const Training& training, uint64_t step) {
  const int rank = driver.rank().rank();
  const int world = driver.rank().world();
  std::vector<bool> is_idle;
  std::vector<std::unique_ptr<Walk>> walks;
  for (uint32_t m = 0; m < kMicroBatches; ++m) {
    const std::vector<uint64_t> samples = samples_of(rank, world, m);
    is_idle.push_back(samples.empty());
    walks.push_back(std::make_unique<Walk>(driver, training, step, samples));
  }
  Schedule uses = plain_schedule(TwoLayerNet::kUnits, is_idle, training.announces_last);
  uses = training.splits_backward ? split_backward(uses) : uses;
  driver.begin(uses, training.uses_are_known);
  for (const ciuic_use& use : uses) {
    Walk& walk = *walks[use.micro_batch];
    if (use.pass == CIUIC_PASS_FORWARD) {
      walk.forward(use);
    } else if (use.pass == CIUIC_PASS_BACKWARD_INPUT) {
      walk.backward_input(use);
    } else if (use.pass == CIUIC_PASS_BACKWARD_WEIGHT) {
      walk.backward_weight(use);
    } else {
      walk.backward(use);
    }
  }
  driver.end_backward();
}

void train(const TestContext& context, const Training& training, int world, MemoryState& from,
           MemoryState& to, uint64_t first, uint64_t last) {
  RankGroup ranks(world);
  run_ranks(ranks, [&](Rank& rank) {
    ReferenceAdamW optimizer(rank.host.host(), training.moment);
    StepDriver driver(context, rank, training.model, &optimizer);
    driver.load(from);
    for (uint64_t update = first; update <= last; ++update) {
      run_passes(driver, training, update);
      (void)driver.stats();
      driver.step(rule_step(update));
    }
    driver.save(to);
  });
}

template <typename Real>
UnshardedNet<Real>::UnshardedNet(const Training& training) : training_(training) {
  for (uint64_t id = 0; id < training.model.size(); ++id) {
    std::vector<Real>& values = master.emplace_back();
    for (int64_t i = 0; i < training.model[id].num_elements(); ++i) {
      values.push_back(static_cast<Real>(first_value(id, i)));
    }
    mean.emplace_back(values.size());
    square.emplace_back(values.size());
  }
}

template <typename Real>
double UnshardedNet<Real>::value(uint64_t param, int64_t i) const {
  const uint64_t id = storage_of(training_.model, param);
  char bytes[sizeof(double)];
  const ciuic_dtype dtype = training_.model[id].value;
  const bool is_wider = same(dtype, kF32) && sizeof(Real) == sizeof(double);
  const Real wide = master[id][static_cast<size_t>(i)];
  if (is_wider) {  // the reference in double knows no other type
    return static_cast<double>(wide);
  }
  store_element(dtype, bytes, static_cast<double>(wide));
  return load_element(dtype, bytes);
}

template <typename Real>
std::vector<std::vector<double>> UnshardedNet<Real>::gradients(uint64_t step) const {
  std::vector<std::vector<double>> sums;
  for (const ModelParam& p : training_.model) {
    sums.emplace_back(static_cast<size_t>(p.num_elements()));
  }
  const TwoLayerNet::Read read = [this](uint64_t param, int64_t i) { return value(param, i); };
  const TwoLayerNet::Add add = [&](uint64_t param, int64_t i, double g) {
    sums[storage_of(training_.model, param)][static_cast<size_t>(i)] += g;
  };
  for (uint64_t s = 0; s < kSamples; ++s) {
    TwoLayerNet::Tape tape = training_.net.sample(step, s);
    for (uint32_t unit = 0; unit < TwoLayerNet::kUnits; ++unit) {
      TwoLayerNet::forward(unit, read, tape);
    }
    for (uint32_t unit = TwoLayerNet::kUnits; unit-- > 0;) {
      training_.net.backward(unit, read, tape, add);
    }
  }
  return sums;
}

template <typename Real>
void UnshardedNet<Real>::train(uint64_t first, uint64_t last) {
  for (uint64_t update = first; update <= last; ++update) {
    const std::vector<std::vector<double>> sums = gradients(update);
    for (uint64_t id = 0; id < training_.model.size(); ++id) {
      const ModelParam& p = training_.model[id];
      RuleStep step = rule_step(update);
      step.lr *= p.lr_scale;
      step.weight_decay *= p.weight_decay;
      const AdamWScalars<Real> scalars(AdamWRule{}, step);
      for (size_t i = 0; i < master[id].size() && p.is_trained(); ++i) {
        adamw_element(scalars, static_cast<Real>(sums[id][i] * step.grad_scale), master[id][i],
                      mean[id][i], square[id][i]);
      }
    }
  }
}

double norm_of(const Model& model, const std::vector<std::vector<double>>& gradients) {
  double squares = 0;
  for (uint64_t id = 0; id < model.size(); ++id) {
    if (model[id].is_trained() && (model[id].flags & CIUIC_PARAM_IN_NORM) != 0) {
      for (const double g : gradients[id]) {
        squares += g * g;
      }
    }
  }
  return std::sqrt(squares);
}

const MemoryState::Entry& moment(const MemoryState& state, const std::string& name,
                                 const ModelParam& param) {
  const std::string key = "moment/" + name + "/" + param.name;
  require(state.has(key),
          "state_save wrote no " + key + ", which the optimizer's state_spec asks for");
  return state.entry(key);
}

const MemoryState::Entry& stored(const MemoryState& state, const ModelParam& param) {
  for (const char* role : {"master/", "value/"}) {
    if (state.has(role + param.name)) {
      return state.entry(role + param.name);
    }
  }
  throw CheckFailed("state_save wrote neither master/" + param.name + " nor value/" + param.name);
}

template <typename Real>
void require_equal(const MemoryState& state, const UnshardedNet<Real>& net, const Model& model,
                   const std::string& when, double bound) {
  const std::vector<std::string> uneven = state.uneven();
  require(uneven.empty(), when + ": state_save of all ranks together wrote elements of " +
                              (uneven.empty() ? "" : uneven.front()) +
                              " never or more than once; expected each once");
  const auto compare = [&](const MemoryState::Entry& entry, const std::vector<Real>& expected,
                           const std::string& what) {
    require(entry.written.size() == expected.size(),
            when + ": " + what + " was saved with " + std::to_string(entry.written.size()) +
                " elements, expected " + std::to_string(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      const double got = entry.at(static_cast<int64_t>(i));
      const auto want = static_cast<double>(expected[i]);
      const bool is_close = bound == 0 ? got == want : std::abs(got - want) <= bound;
      require(is_close, when + ": " + what + "[" + std::to_string(i) + "]: got " +
                            std::to_string(got) + ", the unsharded run has " +
                            std::to_string(want) + ", difference " + std::to_string(got - want) +
                            ", allowed " + std::to_string(bound));
    }
  };
  for (uint64_t id = 0; id < model.size(); ++id) {
    const ModelParam& p = model[id];
    if (p.tied_to >= 0 || p.num_elements() == 0) {
      continue;
    }
    compare(stored(state, p), net.master[id], p.name);
    if (p.is_trained() && bound == 0) {
      compare(moment(state, "exp_avg", p), net.mean[id], "moment exp_avg of " + p.name);
      compare(moment(state, "exp_avg_sq", p), net.square[id], "moment exp_avg_sq of " + p.name);
    }
  }
}

template class UnshardedNet<float>;
template class UnshardedNet<double>;
template void require_equal(const MemoryState&, const UnshardedNet<float>&, const Model&,
                            const std::string&, double);
template void require_equal(const MemoryState&, const UnshardedNet<double>&, const Model&,
                            const std::string&, double);

}  // namespace ciuic::testing
