// SPDX-License-Identifier: MIT
#include "core/train/objective_schedule.h"

namespace ciuic::core {

ObjectiveSchedule::ObjectiveSchedule(const ScheduleSection& section, const BatchCourse& course)
    : balance_(section.balance_loss_weight, course),
      device_balance_(section.device_balance_loss_weight, course),
      communication_balance_(section.communication_balance_loss_weight, course),
      router_z_(section.router_z_loss_weight, course),
      prediction_(section.mtp_loss_weight, course),
      router_noise_(section.router_noise, course) {}

Objective ObjectiveSchedule::at(SchedulePosition position) const {
  Objective objective;
  objective.balance = balance_.at(position);
  objective.device_balance = device_balance_.at(position);
  objective.communication_balance = communication_balance_.at(position);
  objective.router_z = router_z_.at(position);
  objective.prediction = prediction_.at(position);
  objective.router_noise = router_noise_.at(position);
  return objective;
}

NamedSchedules ObjectiveSchedule::all() const {
  return {{"balance_loss_weight", &balance_},
          {"device_balance_loss_weight", &device_balance_},
          {"communication_balance_loss_weight", &communication_balance_},
          {"router_z_loss_weight", &router_z_},
          {"mtp_loss_weight", &prediction_},
          {"router_noise", &router_noise_}};
}

}  // namespace ciuic::core
