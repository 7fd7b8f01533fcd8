// SPDX-License-Identifier: MIT
#include "messages.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <ciuic/view.hpp>

#include "collectives.h"

namespace ciuic::plugins::gloo {
namespace {

bool is_send(const Request& r) { return r.op == CIUIC_OP_SEND; }
int64_t bytes_of(const Request& r) { return is_send(r) ? r.in_part(0).bytes : r.out_part(0).bytes; }

Message to_message(const Request& r) {
  char* data = is_send(r) ? const_cast<char*>(r.in) : r.out;
  Request both = r;  // the two ends of a message have one signature
  both.op = CIUIC_OP_SEND;
  return {{is_send(r), r.peer, data, bytes_of(r)}, r.tag, signature_of(both)};
}

/// The k-th send with a tag and the k-th receive with it.
void copy_to_self(const std::vector<Request>& requests) {
  std::map<uint32_t, std::pair<std::vector<const Request*>, std::vector<const Request*>>> by_tag;
  for (const Request& r : requests) {
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

Operation exchange_messages(const std::vector<Request>& requests) {
  Operation operation;
  operation.what = requests[0].what;
  if (requests.size() > 1) {
    operation.what += " and " + std::to_string(requests.size() - 1) + " messages beside it";
  }
  operation.timeout = requests[0].timeout;
  std::vector<Message> messages;
  for (const Request& r : requests) {
    messages.push_back(to_message(r));
    operation.partners.push_back(r.peer);
  }
  operation.run = [messages = std::move(messages)](ProcessGroup& group, Milliseconds timeout,
                                                   Done done) {
    group.pass(messages, timeout, std::move(done));
  };
  return operation;
}

}  // namespace

std::vector<Operation> plan_messages(const std::vector<Request>& requests) {
  std::vector<Request> own;
  std::map<std::chrono::nanoseconds, std::vector<Request>> by_timeout;
  for (const Request& r : requests) {
    (r.peer == r.rank ? own : by_timeout[r.timeout]).push_back(r);
  }
  copy_to_self(own);
  std::vector<Operation> operations;
  for (const auto& [timeout, together] : by_timeout) {
    operations.push_back(exchange_messages(together));
  }
  return operations;
}

}  // namespace ciuic::plugins::gloo
