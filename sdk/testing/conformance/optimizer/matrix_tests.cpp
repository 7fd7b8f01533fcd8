// SPDX-License-Identifier: MIT
//
// Parameters of two dimensions, for rules that treat them otherwise: tall, wide, a row, a column.
#include <string>

#include "operand.h"
#include "optimizer_host.h"
#include "optimizer_tables.h"
#include "rounds_by_seed.h"

namespace ciuic::testing {
namespace {

RuleStep step_of(uint64_t update) { return {update, 1e-2, 1, 0.5}; }

struct Shape {
  int64_t rows, columns;
};
constexpr Shape kShapes[] = {{37, 23}, {23, 37}, {1, 65}, {65, 1}};

/// In other memory, cut at granules, and by another instance from half way on.
void same_bits(const TestContext& context) {
  for_each_layout([&](const Layout& layout) {
    const OptimizerHost host;
    const PluginInstance one = context.create(host);
    const PluginInstance two = context.create(host);
    for (const Shape& shape : kShapes) {
      Operand whole(one, shape.rows, shape.columns, layout, context.seed, 1);
      Operand other(one, shape.rows, shape.columns, layout, context.seed, 3);
      const std::vector<Range> ranges = cut(whole.count(), whole.granule, 7);
      for (uint64_t update = 1; update <= 4; ++update) {
        whole.set_gradients(context.seed + update);
        other.set_gradients(context.seed + update);
        whole.update(one, step_of(update));
        other.update(update <= 2 ? one : two, step_of(update), ranges);
      }
      const std::string what = std::to_string(shape.rows) + " x " + std::to_string(shape.columns) +
                               " (" + text_of(layout) + ")";
      other.require_same(whole, "4 updates of a matrix of " + what);
      whole.require_margins("a matrix of " + what);
      other.require_margins("a matrix of " + what);
    }
  });
}

void copy_is_rounded(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  if (rounds_by_seed(optimizer, kNarrowLayout, context.seed)) {
    throw NotOffered("it rounds by the seed");
  }
  for (const Shape& shape : kShapes) {
    Operand o(optimizer, shape.rows, shape.columns, kNarrowLayout, context.seed, 1);
    o.update(optimizer, step_of(1));
    for (int64_t i = 0; i < o.count(); ++i) {
      const float even = bf16_to_float(float_to_bf16(static_cast<float>(o.master->at(i))));
      require(o.value.at(i) == static_cast<double>(even),
              "element " + std::to_string(i) + " of a matrix' bf16 copy is " +
                  std::to_string(o.value.at(i)) + ", its master rounds to " + std::to_string(even));
    }
  }
}

void stands_still(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  for (const Shape& shape : kShapes) {
    Operand o(optimizer, shape.rows, shape.columns, kPlainLayout, context.seed, 1);
    const std::string before = o.value.bits();
    o.update(optimizer, {1, 0, 0, 1});
    require(o.value.bits() == before, "lr 0 and no decay moved a matrix of " +
                                          std::to_string(shape.rows) + " x " +
                                          std::to_string(shape.columns));
  }
}

}  // namespace

TestTable optimizer_matrix_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_OPTIMIZER;
  return {
      {"optimizer.matrix.bits", 3, kKind, 30,
       "a matrix has the same bits in other memory, cut at granules, in another instance",
       same_bits},
      {"optimizer.matrix.copy", 3, kKind, 20, "a matrix' narrow copy is its master, rounded",
       copy_is_rounded},
      {"optimizer.matrix.zero_lr", 3, kKind, 20, "lr 0 without decay leaves a matrix as it is",
       stands_still},
  };
}

}  // namespace ciuic::testing
