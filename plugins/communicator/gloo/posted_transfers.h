// SPDX-License-Identifier: MIT
//
// Transfers under way, as buffers of Gloo.
#pragma once

#include <chrono>
#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>
#include <memory>
#include <vector>

#include "transfer.h"

namespace ciuic::plugins::gloo {

/// One thread at a time. The memory stays in use until wait returns or this object is gone.
class PostedTransfers {
 public:
  /// Does not block. Empty transfers are left out; both ends do so.
  void post(::gloo::Context& context, const Transfer& transfer, uint64_t slot);
  /// Until all have ended. Throws what Gloo throws.
  void wait(std::chrono::milliseconds timeout);

 private:
  struct Posted {
    std::unique_ptr<::gloo::transport::UnboundBuffer> buffer;
    bool is_send;
    int peer;
  };
  std::vector<Posted> posted_;
};

/// Posts a step's transfers, receives first, so that what arrives finds its place.
void post_step(PostedTransfers& posted, ::gloo::Context& context, const Step& step,
               uint64_t operation, uint64_t number, uint32_t signature);

}  // namespace ciuic::plugins::gloo
