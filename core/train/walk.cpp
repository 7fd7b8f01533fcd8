// SPDX-License-Identifier: MIT
#include "core/train/walk.h"

namespace ciuic::core {
namespace {

void add(std::vector<ciuic_use>& walk, int64_t unit, uint32_t pass, size_t micro_batch,
         uint32_t flags) {
  ciuic_use use{};
  use.struct_size = sizeof(use);
  use.flags = flags;
  use.index = static_cast<uint32_t>(walk.size());
  use.unit = static_cast<uint32_t>(unit);
  use.pass = pass;
  use.micro_batch = static_cast<uint32_t>(micro_batch);
  walk.push_back(use);
}

}  // namespace

uint32_t idle_flag(const Model& model, int64_t unit, bool is_idle) {
  return is_idle && !model.serves(unit) ? uint32_t{CIUIC_USE_IDLE} : 0U;
}

std::vector<ciuic_use> training_walk(const Model& model, const std::vector<bool>& is_idle) {
  std::vector<ciuic_use> walk;
  for (size_t m = 0; m < is_idle.size(); ++m) {
    const uint32_t last = m + 1 == is_idle.size() ? uint32_t{CIUIC_USE_LAST_GRAD} : 0U;
    for (int64_t u = 0; u < model.head_unit(); ++u) {
      add(walk, u, CIUIC_PASS_FORWARD, m, idle_flag(model, u, is_idle[m]));
    }
    for (int64_t u = model.head_unit(); u >= 0; --u) {
      add(walk, u, CIUIC_PASS_BACKWARD, m, idle_flag(model, u, is_idle[m]) | last);
    }
  }
  return walk;
}

std::vector<ciuic_use> evaluation_walk(const Model& model, const std::vector<bool>& is_idle) {
  std::vector<ciuic_use> walk;
  for (size_t m = 0; m < is_idle.size(); ++m) {
    for (int64_t u = 0; u <= model.last_layer_unit(); ++u) {
      add(walk, u, CIUIC_PASS_FORWARD, m, idle_flag(model, u, is_idle[m]));
    }
    add(walk, model.head_unit(), CIUIC_PASS_FORWARD, m,
        idle_flag(model, model.head_unit(), is_idle[m]));
  }
  return walk;
}

}  // namespace ciuic::core
