// SPDX-License-Identifier: MIT
//
// One pass over a list of updates: all their blocks as one range over the threads. Gradient, master,
// state and the narrow copy are touched once, in one sweep of memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/optimizer.hpp>

#include "optimizer/update_operands.h"

namespace ciuic::plugins::optimizer {

/// Updates one block of update number `index`. Any thread; may not throw.
using BlockRule = std::function<void(size_t index, const Block& block)>;

class UpdatePass {
 public:
  UpdatePass(const Host& host, std::string plugin, StateFormat state);

  /// Throws UNIMPLEMENTED for memory other than the host's, before anything is written.
  void run(const std::vector<const ciuic_update*>& updates, const ciuic_stream* stream,
           const BlockRule& rule) const;

  /// The same with numbers that `scalars_of` takes from each update once, before the pass.
  template <typename ScalarsOf, typename UpdateBlock>
  void run_with(const std::vector<const ciuic_update*>& updates, const ciuic_stream* stream,
                const ScalarsOf& scalars_of, const UpdateBlock& update_block) const {
    std::vector<decltype(scalars_of(*updates.front()))> scalars;
    scalars.reserve(updates.size());
    for (const ciuic_update* u : updates) {
      scalars.push_back(scalars_of(*u));
    }
    run(updates, stream,
        [&](size_t index, const Block& block) { update_block(scalars[index], block); });
  }

  [[nodiscard]] const StateFormat& state() const { return state_; }

 private:
  const Host& host_;
  std::string plugin_;
  StateFormat state_;
  const ciuic_thread_service* threads_;  // NULL: the caller's thread does it all
};

/// The addresses of all updates.
std::vector<const ciuic_update*> all_of(ArrayView<ciuic_update> updates);

}  // namespace ciuic::plugins::optimizer
