// SPDX-License-Identifier: MIT
#include "core/train/objective_schedule.h"

namespace ciuic::core {

ObjectiveSchedule::ObjectiveSchedule(const ScheduleSection& section, int64_t total_steps,
                                     int64_t step_tokens)
    : balance_(section.balance_loss_weight, total_steps, step_tokens),
      device_balance_(section.device_balance_loss_weight, total_steps, step_tokens),
      communication_balance_(section.communication_balance_loss_weight, total_steps, step_tokens),
      router_z_(section.router_z_loss_weight, total_steps, step_tokens),
      prediction_(section.mtp_loss_weight, total_steps, step_tokens),
      router_noise_(section.router_noise, total_steps, step_tokens) {}

Objective ObjectiveSchedule::at(int64_t t) const {
  Objective objective;
  objective.balance = balance_.at(t);
  objective.device_balance = device_balance_.at(t);
  objective.communication_balance = communication_balance_.at(t);
  objective.router_z = router_z_.at(t);
  objective.prediction = prediction_.at(t);
  objective.router_noise = router_noise_.at(t);
  return objective;
}

}  // namespace ciuic::core
