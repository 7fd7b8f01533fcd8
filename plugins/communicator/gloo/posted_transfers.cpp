// SPDX-License-Identifier: MIT
#include "posted_transfers.h"

#include <string>

#include <ciuic/error.hpp>

namespace ciuic::plugins::gloo {

void PostedTransfers::post(::gloo::Context& context, const Transfer& transfer, uint64_t slot) {
  if (transfer.bytes == 0) {
    return;
  }
  auto buffer = context.createUnboundBuffer(transfer.data, static_cast<size_t>(transfer.bytes));
  if (transfer.is_send) {
    buffer->send(transfer.peer, slot);
  } else {
    buffer->recv(transfer.peer, slot);
  }
  posted_.push_back({std::move(buffer), transfer.is_send, transfer.peer});
}

void PostedTransfers::wait(std::chrono::milliseconds timeout) {
  for (const Posted& transfer : posted_) {
    const bool done = transfer.is_send ? transfer.buffer->waitSend(nullptr, timeout)
                                       : transfer.buffer->waitRecv(nullptr, timeout);
    if (!done) {
      throw Error(CIUIC_UNAVAILABLE, "the transfer with group rank " +
                                         std::to_string(transfer.peer) + " was given up");
    }
  }
  posted_.clear();
}

void post_step(PostedTransfers& posted, ::gloo::Context& context, const Step& step,
               uint64_t operation, uint64_t number, uint32_t signature) {
  for (const bool sends : {false, true}) {
    for (const Transfer& transfer : step.transfers) {
      if (transfer.is_send == sends) {
        const uint32_t own = mix(signature, static_cast<uint64_t>(transfer.bytes));
        posted.post(context, transfer, step_slot(operation, number, own));
      }
    }
  }
}

}  // namespace ciuic::plugins::gloo
