// SPDX-License-Identifier: MIT
#include "self_delivery.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>

#include "communicator/capabilities.h"

namespace ciuic::plugins {
namespace {

bool is_send(const Request& r) { return r.op == CIUIC_OP_SEND; }
int64_t bytes_of(const Request& r) { return is_send(r) ? r.in_part(0).bytes : r.out_part(0).bytes; }

/// A collective of one rank: its input is its output.
void copy_alone(const Request& r) {
  if (!r.in_parts.empty() && !r.out_parts.empty() && r.in_part(0).bytes > 0) {
    std::memmove(r.out + r.out_part(0).begin, r.in + r.in_part(0).begin,
                 static_cast<size_t>(r.in_part(0).bytes));
  }
}

}  // namespace

void copy_to_self(const std::vector<Request>& messages) {
  std::map<uint32_t, std::pair<std::vector<const Request*>, std::vector<const Request*>>> by_tag;
  for (const Request& r : messages) {
    (is_send(r) ? by_tag[r.tag].first : by_tag[r.tag].second).push_back(&r);
  }
  std::vector<std::pair<const Request*, const Request*>> pairs;
  for (const auto& [tag, ends] : by_tag) {
    const auto& [sends, receives] = ends;
    for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
      if (i >= sends.size() || i >= receives.size()) {
        const Request& alone = i < sends.size() ? *sends[i] : *receives[i];
        throw Error(CIUIC_INVALID, alone.what +
                                       ": a message to oneself needs its send and its receive, "
                                       "with one tag, in the same submit");
      }
      if (bytes_of(*sends[i]) != bytes_of(*receives[i]) ||
          !same(sends[i]->dtype, receives[i]->dtype)) {
        throw Error(CIUIC_INVALID, receives[i]->what + ": expected " +
                                       dtype_name(receives[i]->dtype) + ", got " +
                                       std::to_string(bytes_of(*sends[i])) + " bytes of " +
                                       dtype_name(sends[i]->dtype));
      }
      pairs.emplace_back(sends[i], receives[i]);
    }
  }
  for (const auto& [send, receive] : pairs) {
    if (bytes_of(*send) > 0) {
      std::memmove(receive->out, send->in, static_cast<size_t>(bytes_of(*send)));
    }
  }
}

std::vector<Request> deliver_to_self(std::vector<Request> requests) {
  std::vector<Request> messages;
  std::vector<Request> rest;
  for (Request& r : requests) {
    if (is_message(r.op) && r.peer == r.rank) {
      messages.push_back(std::move(r));
    } else if (r.world == 1) {
      copy_alone(r);
    } else {
      rest.push_back(std::move(r));
    }
  }
  copy_to_self(messages);
  return rest;
}

}  // namespace ciuic::plugins
