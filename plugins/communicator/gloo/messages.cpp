// SPDX-License-Identifier: MIT
#include "messages.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collectives.h"
#include "communicator/self_delivery.h"

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
