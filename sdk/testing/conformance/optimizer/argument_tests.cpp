// SPDX-License-Identifier: MIT
//
// What an update's numbers and types mean: lr and scale are final, decay is a factor, narrow copies
// are rounded to nearest even, gradients of every float type are the same numbers.
#include <cmath>
#include <cstring>
#include <string>

#include "operand.h"
#include "optimizer_host.h"
#include "optimizer_tables.h"
#include "rounds_by_seed.h"

namespace ciuic::testing {
namespace {

constexpr double kEps = 1.0 / (1 << 23);  // of fp32

RuleStep step_of(uint64_t update) { return {update, 1e-2, 1, 0.5}; }

/// Masters differ by a few roundings at most: what another precision inside may do in three updates.
void require_close(const Operand& got, const Operand& expected, const std::string& when) {
  constexpr double kUlps = 16;
  for (int64_t i = 0; i < got.count(); ++i) {
    const double a = got.master_column().at(i);
    const double b = expected.master_column().at(i);
    require(std::abs(a - b) <= kUlps * kEps * std::max(1.0, std::abs(b)),
            when + ": element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " +
                std::to_string(b) + " within 16 units in the last place");
  }
}

/// Numbers that every float type in use holds exactly.
double short_number(uint64_t seed, int64_t i) { return std::floor(arbitrary(seed, i) * 64) / 64; }

void gradient_types(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  Operand reference(optimizer, 1003, kPlainLayout, context.seed);
  const auto run = [&](Operand& o) {
    for (uint64_t update = 1; update <= 3; ++update) {
      for (int64_t i = 0; i < o.count(); ++i) {
        o.grad.set(i, short_number(update, i));
      }
      o.update(optimizer, step_of(update));
    }
  };
  run(reference);
  int taken = 0;
  for (const ciuic_dtype type : {kF64, kBF16, kF16}) {
    Operand o(optimizer, 1003, {type, kF32, false, kF32}, context.seed);
    try {
      run(o);
    } catch (const NotOffered&) {
      continue;
    }
    ++taken;
    require_close(o, reference, "gradients in " + dtype_name(type) + " instead of f32");
  }
  if (taken == 0) {
    throw NotOffered("update takes fp32 gradients only");
  }
}

void zero_lr(const TestContext& context) {
  for_each_layout([&](const Layout& layout) {
    const OptimizerHost host;
    const PluginInstance optimizer = context.create(host);
    Operand o(optimizer, 1003, layout, context.seed);
    const Operand before(optimizer, 1003, layout, context.seed);
    for (uint64_t update = 1; update <= 3; ++update) {
      o.update(optimizer, {update, 0, 0, 1});
    }
    for (int64_t i = 0; i < o.count(); ++i) {
      require(o.master_column().at(i) == before.master_column().at(i),
              "lr 0 and no decay moved element " + std::to_string(i) + " from " +
                  std::to_string(before.master_column().at(i)) + " to " +
                  std::to_string(o.master_column().at(i)) + ", by " +
                  std::to_string((o.master_column().at(i) - before.master_column().at(i)) / kEps) +
                  " units of 2^-23 (" + text_of(layout) + ")");
    }
  });
}

void scale_is_linear(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  Operand small(optimizer, 1003, kPlainLayout, context.seed);
  Operand large(optimizer, 1003, kPlainLayout, context.seed);
  for (uint64_t update = 1; update <= 3; ++update) {
    for (int64_t i = 0; i < small.count(); ++i) {
      small.grad.set(i, arbitrary(update, i));
      large.grad.set(i, small.grad.at(i) * 1024);
    }
    small.update(optimizer, {update, 1e-2, 1, 0.5});
    large.update(optimizer, {update, 1e-2, 1, 0.5 / 1024});
  }
  require_close(large, small, "gradients 1024 times as large with grad_scale 1/1024 of it");
  // A scale that changes from update to update shows in every rule with a memory.
  constexpr double kScales[] = {1, 1.0 / 64, 1.0 / 8};
  Operand scaled(optimizer, 1003, kPlainLayout, context.seed);
  Operand plain(optimizer, 1003, kPlainLayout, context.seed);
  for (uint64_t update = 1; update <= 3; ++update) {
    const double scale = kScales[update - 1];
    for (int64_t i = 0; i < scaled.count(); ++i) {
      scaled.grad.set(i, arbitrary(update, i));
      plain.grad.set(i, scaled.grad.at(i) * scale);
    }
    scaled.update(optimizer, {update, 1e-2, 1, scale});
    plain.update(optimizer, {update, 1e-2, 1, 1});
  }
  require_close(scaled, plain, "grad_scale 1, 1/64 and 1/8 against gradients scaled beforehand");
}

/// lr and weight_decay in the update include the parameter's factors already.
void factors_are_final(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  Operand plain(optimizer, 512, kPlainLayout, context.seed);
  Operand factors(optimizer, 512, kPlainLayout, context.seed);
  factors.param.lr_scale = 0.25;
  factors.param.weight_decay = 0.5;
  for (uint64_t update = 1; update <= 3; ++update) {
    plain.update(optimizer, step_of(update));
    factors.update(optimizer, step_of(update));
  }
  factors.require_same(plain,
                       "a parameter with lr_scale 1/4 and weight_decay 1/2 whose update "
                       "says the same lr and weight_decay");
}

bool declares_decay(const TestContext& context) {
  for (const ciuic_option_spec& spec :
       ArrayView<ciuic_option_spec>(context.plugin.descriptor().options)) {
    if (std::strcmp(spec.key, "weight_decay") == 0) {
      return spec.type == CIUIC_TYPE_F64;
    }
  }
  return false;
}

void decay_is_a_factor(const TestContext& context) {
  if (!declares_decay(context)) {
    throw NotOffered("there is no option weight_decay");
  }
  const OptimizerHost host;
  const PluginInstance optimizer = context.plugin.create(host, {{"weight_decay", 0.125}});
  const auto decayed = [&](double factor) {
    auto o = std::make_unique<Operand>(optimizer, 256, kPlainLayout, context.seed);
    for (int64_t i = 0; i < o->count(); ++i) {
      o->grad.set(i, 0);
    }
    o->update(optimizer, {1, 1e-2, factor, 1});
    return o;
  };
  const Operand before(optimizer, 256, kPlainLayout, context.seed);
  const auto none = decayed(0);
  const auto once = decayed(1);
  for (int64_t i = 0; i < before.count(); ++i) {
    require(none->value.at(i) == before.value.at(i),
            "weight_decay factor 0 and no gradient moved element " + std::to_string(i));
    require(std::abs(once->value.at(i)) < std::abs(before.value.at(i)),
            "option weight_decay 1/8, factor 1 and no gradient: element " + std::to_string(i) +
                " went from " + std::to_string(before.value.at(i)) + " to " +
                std::to_string(once->value.at(i)) + ", expected nearer to 0");
  }
}

/// Ties of both kinds and their neighbours, zeros, subnormals, large ones, then arbitrary bits.
uint32_t test_bits(uint64_t seed, int64_t i) {
  constexpr uint32_t kSpecial[] = {0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x3F817FFF,
                                   0xBF808000, 0xBF818000, 0x00000000, 0x80000000, 0x7F7F7FFF,
                                   0x3FFF8000, 0x3FFFFFFF, 0x00808000, 0x00818000};
  if (i < static_cast<int64_t>(std::size(kSpecial))) {
    return kSpecial[i];
  }
  const auto mantissa = static_cast<uint32_t>((arbitrary(seed, i) + 1) * (1 << 22));
  const auto exponent = static_cast<uint32_t>(100 + i % 60) << 23;
  return exponent | mantissa | (i % 2 == 0 ? 0x80000000U : 0U) | (i % 5 == 0 ? 0x8000U : 0U);
}

float next_bf16(uint16_t bits, int by) { return bf16_to_float(static_cast<uint16_t>(bits + by)); }

/// lr 0 leaves the master: its copy is what rounding makes of it.
void copy_is_rounded(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  Operand o(optimizer, 4096, kNarrowLayout, context.seed);
  for (int64_t i = 0; i < o.count(); ++i) {
    const uint32_t bits = test_bits(context.seed, i);
    std::memcpy(o.master->place(i), &bits, sizeof(bits));
    o.grad.set(i, 0);
    o.value.set(i, 0);
  }
  o.update(optimizer, {1, 0, 0, 1});
  const bool is_stochastic = rounds_by_seed(optimizer, kNarrowLayout, context.seed);
  for (int64_t i = 0; i < o.count(); ++i) {
    const auto master = static_cast<float>(o.master->at(i));
    const auto got = static_cast<float>(o.value.at(i));
    const uint16_t nearest = float_to_bf16(master);
    const float even = bf16_to_float(nearest);
    const bool is_neighbour =
        got == next_bf16(nearest, 1) || got == next_bf16(nearest, -1) || got == even;
    const bool is_between = std::abs(got - master) < std::abs(even) / 64;
    const bool is_right = got == even || (is_stochastic && is_neighbour && is_between);
    require(is_right, "master " + std::to_string(master) + " (element " + std::to_string(i) +
                          ") was copied to bf16 as " + std::to_string(got) +
                          ", to nearest even it is " + std::to_string(even) +
                          (is_stochastic ? "; a stochastic rule takes a neighbour" : ""));
  }
}

/// The copy is written in every update, and masters keep what it loses.
void copy_follows(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  if (rounds_by_seed(optimizer, kNarrowLayout, context.seed)) {
    throw NotOffered("it rounds by the seed");
  }
  Operand o(optimizer, 1003, kNarrowLayout, context.seed);
  Operand wide(optimizer, 1003, kPlainLayout, context.seed);
  for (uint64_t update = 1; update <= 10; ++update) {
    o.set_gradients(update);
    wide.set_gradients(update);
    o.update(optimizer, {update, 1e-4, 1, 1});
    wide.update(optimizer, {update, 1e-4, 1, 1});
  }
  require_close(o, wide, "masters with a bf16 copy against fp32 values without one");
  for (int64_t i = 0; i < o.count(); ++i) {
    const float even = bf16_to_float(float_to_bf16(static_cast<float>(o.master->at(i))));
    require(o.value.at(i) == static_cast<double>(even),
            "after 10 updates element " + std::to_string(i) + " of the bf16 copy is " +
                std::to_string(o.value.at(i)) + ", its master rounds to " + std::to_string(even));
  }
}

}  // namespace

TestTable optimizer_argument_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_OPTIMIZER;
  return {
      {"optimizer.update.gradient_types", 3, kKind, 20,
       "gradients of every float type that it takes mean the same", gradient_types},
      {"optimizer.update.zero_lr", 3, kKind, 20, "lr 0 without decay leaves masters as they are",
       zero_lr},
      {"optimizer.update.grad_scale", 3, kKind, 20, "a gradient is grad times grad_scale",
       scale_is_linear},
      {"optimizer.update.factors", 3, kKind, 20,
       "lr and weight_decay are final: the parameter's own factors are in them", factors_are_final},
      {"optimizer.update.decay", 3, kKind, 20,
       "the update's weight_decay is a factor on the rule's option", decay_is_a_factor},
      {"optimizer.copy.rounding", 3, kKind, 20,
       "a narrow copy is the master rounded to nearest even", copy_is_rounded},
      {"optimizer.copy.follows", 3, kKind, 20,
       "a copy is written in every update; masters keep what it loses", copy_follows},
  };
}

}  // namespace ciuic::testing
