// SPDX-License-Identifier: MIT
//
// Two modules, the dtypes of every role, and a step's outcome: applied, skipped, applied ... and
// applied for good in the end, as a loss scale that only falls may rightly give up.
#include <ciuic/testing/guarded_struct.hpp>

#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

constexpr uint64_t kMixed = 16;  // rounds in which every second step is skipped

class PrecisionExercise final : public Exercise {
 public:
  using Exercise::Exercise;

  void start(const Instance& p) override {
    const auto& vt = p.table<ciuic_precision_vt>();
    const GuardedArray<ciuic_module> modules(
        {module(0, "model.layers.0.mlp.gate"), module(1, "model.layers.0.mlp.down")});
    p.calls().check("attach", [&] { return vt.attach(p.self(), modules.c()); });
  }

  std::string round(const Instance& p, uint64_t number) override {
    std::string results = dtypes(p) + products(p);
    const auto& vt = p.table<ciuic_precision_vt>();
    double scale = 0;
    p.calls().run("loss_scale", [&] { scale = vt.loss_scale(p.self()); });
    results += bytes_of(&scale, sizeof(scale));
    const GuardedStruct<ciuic_precision_update> update(outcome(number));
    p.calls().check("update", [&] { return vt.update(p.self(), update.get()); });
    return results;
  }

 private:
  static ciuic_module module(uint32_t id, const char* name) {
    ciuic_module m{};
    m.struct_size = sizeof(m);
    m.id = id;
    m.name = to_str(name);
    return m;
  }
  static ciuic_precision_update outcome(uint64_t number) {
    ciuic_precision_update u{};
    u.struct_size = sizeof(u);
    u.step = number + 1;
    u.update = number < kMixed ? number / 2 + 1 : number - kMixed / 2 + 1;
    u.non_finite = number < kMixed ? number % 2 : 0;
    u.grad_norm = 1.5;
    return u;
  }
  static std::string dtypes(const Instance& p) {
    const auto& vt = p.table<ciuic_precision_vt>();
    std::string results;
    for (const char* name : {"model", "model.layers.0.mlp.gate"}) {
      for (uint32_t role = CIUIC_ROLE_VALUE; role <= CIUIC_ROLE_ACTIVATION_GRAD; ++role) {
        ciuic_dtype dtype{};
        p.calls().check("dtype_for",
                        [&] { return vt.dtype_for(p.self(), to_str(name), role, &dtype); });
        results += bytes_of(&dtype, sizeof(dtype));
      }
    }
    return results;
  }
  static std::string products(const Instance& p) {
    const auto& vt = p.table<ciuic_precision_vt>();
    uint32_t bits = 0;
    p.calls().run("hooks", [&] { bits = vt.hooks(p.self(), 0, {CIUIC_DEVICE_CPU, 0}); });
    return bytes_of(&bits, sizeof(bits));
  }
};

}  // namespace

std::unique_ptr<Exercise> exercise_precision(const TestContext& context, Bench& bench) {
  return std::make_unique<PrecisionExercise>(context, bench);
}

}  // namespace ciuic::testing::contract
