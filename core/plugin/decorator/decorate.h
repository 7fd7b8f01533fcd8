// SPDX-License-Identifier: MIT
//
// Puts a kind's decorators around an instance, as its configuration lists them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ciuic/abi/services.h>

#include "core/config/config_text.h"
#include "core/log/log.h"
#include "core/plugin/decorator/decorator_spec.h"
#include "core/plugin/instance.h"
#include "core/plugin/trampoline/layer.h"

namespace ciuic::core {

/// What decorators must know of the instance that they stand around.
struct DecoratorContext {
  uint32_t kind = 0;
  std::string plugin;
  std::string version;
  TomlEntries options;  // as in the resolved file
  int rank = 0;
  int world = 1;
  std::string folder;                        // for what `record` writes without a path
  Log* log = nullptr;                        // outlives the instance
  const ciuic_data_service* data = nullptr;  // NULL: none
  std::chrono::nanoseconds collective_timeout{0};
  /// A field of the step's metrics line.
  std::function<void(const std::string& name, double value)> metric;
  /// The candidate of a shadow, created as the trusted one was. Collective for a communicator.
  std::function<std::unique_ptr<Instance>(const std::string& name)> make_candidate;
};

/// The function that Instance's constructor takes. Throws Failure when it is called, where a log
/// cannot be written or a candidate cannot start.
Decorate make_decorate(const std::vector<DecoratorSpec>& specs, DecoratorContext context);

}  // namespace ciuic::core
