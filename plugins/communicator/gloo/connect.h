// SPDX-License-Identifier: MIT
//
// How the ranks of a group find each other: they introduce themselves through the kv service, pick
// the address on which the others reach them, and connect.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "communicator/membership.h"
#include "session.h"

namespace ciuic::plugins::gloo {

/// What a group and its subgroups have in common.
struct Settings {
  std::chrono::nanoseconds timeout{};
  std::string interface;
  int threads = 2;
  bool one_host = true;
};

/// Throws DEADLINE naming who is missing, UNAVAILABLE when no connection can be made.
[[nodiscard]] std::shared_ptr<Session> connect(const Host& host, const Settings& settings,
                                               const Membership& membership,
                                               std::chrono::nanoseconds timeout);

}  // namespace ciuic::plugins::gloo
