// SPDX-License-Identifier: MIT
#include "collectives.h"

#include <cstring>
#include <memory>
#include <utility>

#include <ciuic/view.hpp>

#include "communicator/capabilities.h"
#include "communicator/input_aside.h"
#include "communicator/reduction.h"
#include "communicator/sum_parts.h"
#include "order_keys.h"

namespace ciuic::plugins::gloo {
namespace {

constexpr int64_t kSmallBytes = 16 << 10;  // below this, latency counts

using Memory = std::shared_ptr<Buffer>;

Memory scratch(const Host& host, int64_t bytes) {
  return std::make_shared<Buffer>(host, ciuic_device{CIUIC_DEVICE_CPU, 0},
                                  static_cast<size_t>(bytes));
}

void copy(void* to, const void* from, int64_t bytes) {
  if (to != from && bytes > 0) {
    std::memmove(to, from, static_cast<size_t>(bytes));
  }
}

int64_t elements(const Request& r, int64_t bytes) { return bytes / dtype_bytes(r.dtype); }

Transfer send_to(int peer, const char* data, int64_t bytes) {
  return {true, peer, const_cast<char*>(data), bytes};
}
Transfer receive_from(int peer, char* data, int64_t bytes) { return {false, peer, data, bytes}; }

/// The steps as the operation's way; `memory` lives as long as Gloo uses it.
void set_steps(Operation& operation, const Request& r, std::vector<Step> steps, Memory memory) {
  operation.run = [steps = std::move(steps), signature = signature_of(r),
                   memory = std::move(memory)](ProcessGroup& group, Milliseconds timeout,
                                               Done done) {
    group.exchange(steps, signature, timeout, std::move(done));
  };
}

// ---- reductions ----

/// Everybody's piece of `bytes` at one owner: the own one where it lies, the others' in scratch.
struct Pieces {
  Memory memory;
  int64_t bytes = 0;
  std::vector<const char*> at;  // by rank

  Pieces(const Request& r, const Host& host, const char* own, int64_t size)
      : memory(scratch(host, size * (r.world - 1))), bytes(size) {
    char* next = memory->bytes();
    for (int p = 0; p < r.world; ++p) {
      at.push_back(p == r.rank ? own : next);
      next += p == r.rank ? 0 : size;
    }
  }
  void receive(const Request& r, Step& step) const {
    for (int p = 0; p < r.world; ++p) {
      if (p != r.rank) {
        step.transfers.push_back(
            receive_from(p, const_cast<char*>(at[static_cast<size_t>(p)]), bytes));
      }
    }
  }
  void reduce(const Request& r, char* out) const {
    reduce_parts(r.dtype, r.reduce, at, elements(r, bytes), out);
  }
};

/// Everybody gets everything.
void all_reduce_by_exchange(const Request& r, const Host& host, Operation& operation) {
  const int64_t bytes = r.in_part(0).bytes;
  const Pieces pieces(r, host, r.in, bytes);
  Step step;
  pieces.receive(r, step);
  for (int p = 0; p < r.world; ++p) {
    if (p != r.rank) {
      step.transfers.push_back(send_to(p, r.in, bytes));
    }
  }
  set_steps(operation, r, {std::move(step)}, pieces.memory);
  operation.finish = [r, pieces] { pieces.reduce(r, r.out); };
}

/// Rank p's share of a tensor that both halves of an all-reduce cut alike.
Part share_of(const Request& r, int p) {
  const int64_t n = elements(r, r.in_part(0).bytes);
  const int64_t width = dtype_bytes(r.dtype);
  const int64_t begin = n * p / r.world;
  return {begin * width, (n * (p + 1) / r.world - begin) * width};
}

void all_reduce_by_halves(const Request& r, const Host& host, Operation& operation) {
  const Part own = share_of(r, r.rank);
  const Pieces pieces(r, host, r.in + own.begin, own.bytes);
  Step scatter;
  Step gather;
  pieces.receive(r, scatter);
  for (int p = 0; p < r.world; ++p) {
    if (p != r.rank) {
      const Part theirs = share_of(r, p);
      scatter.transfers.push_back(send_to(p, r.in + theirs.begin, theirs.bytes));
      gather.transfers.push_back(receive_from(p, r.out + theirs.begin, theirs.bytes));
      gather.transfers.push_back(send_to(p, r.out + own.begin, own.bytes));
    }
  }
  scatter.then = [r, pieces, own] { pieces.reduce(r, r.out + own.begin); };
  set_steps(operation, r, {std::move(scatter), std::move(gather)}, pieces.memory);
}

void all_reduce_by_ring(const Request& r, const Host& host, Operation& operation) {
  const int64_t bytes = r.in_part(0).bytes;
  const int64_t n = elements(r, bytes);
  const bool wide = is_narrow(r.dtype);
  const ciuic_dtype type = wide ? kF32 : r.dtype;
  const Memory floats = wide ? scratch(host, n * 4) : nullptr;
  void* data = wide ? floats->data() : r.out;
  if (wide) {
    widen(r.dtype, r.in, static_cast<float*>(data), n);
  } else {
    copy(r.out, r.in, bytes);
  }
  const bool keys =
      is_float(type) && (r.reduce == CIUIC_REDUCE_MIN || r.reduce == CIUIC_REDUCE_MAX);
  ciuic_dtype travels = type;
  if (keys) {
    to_order_keys_(type, r.reduce, data, n);
    travels = type.bits == 64 ? kI64 : kI32;
  }
  const uint32_t reduce = r.reduce == CIUIC_REDUCE_AVG ? uint32_t{CIUIC_REDUCE_SUM} : r.reduce;
  const uint32_t signature = mix(signature_of(r), static_cast<uint64_t>(bytes));
  operation.run = [data, n, travels, reduce, signature, floats](ProcessGroup& group,
                                                                Milliseconds timeout, Done done) {
    group.all_reduce(data, n, travels, reduce, signature, timeout, std::move(done));
  };
  operation.finish = [r, n, type, keys, data, floats] {
    if (keys) {
      from_order_keys_(type, data, n);
    }
    if (r.reduce == CIUIC_REDUCE_AVG) {
      divide_(type, data, n, r.world);
    }
    if (floats) {
      narrow(r.dtype, static_cast<const float*>(data), r.out, n);
    }
  };
}

void all_reduce(const Request& r, const Host& host, Operation& operation) {
  const int64_t bytes = r.in_part(0).bytes;
  const bool bitwise = r.reduce == CIUIC_REDUCE_OR || r.reduce == CIUIC_REDUCE_AND;
  if (bytes == 0) {
    return;
  }
  if (bytes <= kSmallBytes) {
    all_reduce_by_exchange(r, host, operation);
  } else if (r.tree || bitwise) {
    all_reduce_by_halves(r, host, operation);
  } else {
    all_reduce_by_ring(r, host, operation);
  }
}

void reduce_scatter(const Request& r, const Host& host, Operation& operation) {
  const Part own = r.in_part(r.rank);
  const Pieces pieces(r, host, r.in + own.begin, own.bytes);
  Step step;
  pieces.receive(r, step);
  for (int p = 0; p < r.world; ++p) {
    if (p != r.rank) {
      step.transfers.push_back(send_to(p, r.in + r.in_part(p).begin, r.in_part(p).bytes));
    }
  }
  set_steps(operation, r, {std::move(step)}, pieces.memory);
  operation.finish = [r, pieces] { pieces.reduce(r, r.out); };
}

void reduce(const Request& r, const Host& host, Operation& operation) {
  const int64_t bytes = r.in_part(0).bytes;
  if (!r.is_root()) {
    set_steps(operation, r, {Step{{send_to(r.peer, r.in, bytes)}, nullptr}}, nullptr);
    operation.partners = {r.peer};
    return;
  }
  const Pieces pieces(r, host, r.in, bytes);
  Step step;
  pieces.receive(r, step);
  set_steps(operation, r, {std::move(step)}, pieces.memory);
  operation.finish = [r, pieces] { pieces.reduce(r, r.out); };
}

// ---- what only moves ----

bool has_output(const Request& r) { return !r.out_parts.empty(); }
bool has_input(const Request& r) { return !r.in_parts.empty(); }

/// All-gather, all-to-all, gather, scatter: who has an output receives a part from each rank that
/// has an input.
void move_parts(Request r, const Host& host, Operation& operation) {
  const bool from_root = r.op == CIUIC_OP_SCATTER;
  const bool to_root = r.op == CIUIC_OP_GATHER;
  const bool is_aside = has_input(r) && has_output(r) && arrives_in_input(r);
  const Memory aside = is_aside ? std::make_shared<Buffer>(set_input_aside(r, host)) : nullptr;
  Step step;
  for (int p = 0; p < r.world; ++p) {
    if (p != r.rank && has_output(r) && (!from_root || p == r.peer)) {
      const Part part = r.out_part(p);
      step.transfers.push_back(receive_from(p, r.out + part.begin, part.bytes));
    }
    if (p != r.rank && has_input(r) && (!to_root || p == r.peer)) {
      const Part part = r.in_part(p);
      step.transfers.push_back(send_to(p, r.in + part.begin, part.bytes));
    }
  }
  if ((from_root || to_root) && !r.is_root()) {
    operation.partners = {r.peer};
  }
  set_steps(operation, r, {std::move(step)}, aside);
  if (has_input(r) && has_output(r)) {
    operation.finish = [r, aside] {
      const Part from = r.in_part(r.rank);
      copy(r.out + r.out_part(r.rank).begin, r.in + from.begin, from.bytes);
    };
  }
}

void broadcast(const Request& r, Operation& operation) {
  const int64_t bytes = r.out_part(0).bytes;
  if (bytes == 0) {
    return;
  }
  const uint32_t signature = mix(signature_of(r), static_cast<uint64_t>(bytes));
  operation.run = [r, bytes, signature](ProcessGroup& group, Milliseconds timeout, Done done) {
    group.broadcast(r.out, bytes, r.peer, signature, timeout, std::move(done));
  };
}

void barrier(const Request& r, Operation& operation) {
  operation.run = [signature = signature_of(r)](ProcessGroup& group, Milliseconds timeout,
                                                Done done) {
    group.barrier(signature, timeout, std::move(done));
  };
}

/// Every collective of one rank.
void alone(const Request& r, Operation& operation) {
  if (has_input(r) && has_output(r)) {
    operation.finish = [r] {
      copy(r.out + r.out_part(0).begin, r.in + r.in_part(0).begin, r.in_part(0).bytes);
    };
  }
}

}  // namespace

uint32_t signature_of(const Request& r) {
  const uint64_t type = uint64_t{r.dtype.code} << 16 | uint64_t{r.dtype.bits} << 8 | r.dtype.lanes;
  const uint32_t what = mix(mix(r.op, r.reduce), type);
  return has_root(r.op) ? mix(what, static_cast<uint64_t>(r.peer)) : what;
}

Operation plan_collective(const Request& r, const Host& host) {
  Operation operation;
  operation.what = r.what;
  operation.timeout = r.timeout;
  if (r.world == 1) {
    alone(r, operation);
    return operation;
  }
  switch (r.op) {
    case CIUIC_OP_ALL_REDUCE:
      all_reduce(r, host, operation);
      break;
    case CIUIC_OP_REDUCE:
      reduce(r, host, operation);
      break;
    case CIUIC_OP_REDUCE_SCATTER:
      reduce_scatter(r, host, operation);
      break;
    case CIUIC_OP_BROADCAST:
      broadcast(r, operation);
      break;
    case CIUIC_OP_BARRIER:
      barrier(r, operation);
      break;
    default:
      move_parts(r, host, operation);
  }
  return operation;
}

}  // namespace ciuic::plugins::gloo
