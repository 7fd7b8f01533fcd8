// SPDX-License-Identifier: MIT
#include "collectives.h"

#include <cstring>
#include <memory>
#include <string>

#include <ciuic/view.hpp>

#include "reduction.h"

namespace ciuic::plugins::gloo {
namespace {

constexpr int64_t kSmallBytes = 16 << 10;  // below this, latency counts

const char* op_name(uint32_t op) {
  switch (op) {
    case CIUIC_OP_ALL_REDUCE:
      return "all-reduce";
    case CIUIC_OP_REDUCE:
      return "reduce";
    case CIUIC_OP_REDUCE_SCATTER:
      return "reduce-scatter";
    case CIUIC_OP_ALL_GATHER:
      return "all-gather";
    case CIUIC_OP_BROADCAST:
      return "broadcast";
    case CIUIC_OP_GATHER:
      return "gather";
    case CIUIC_OP_SCATTER:
      return "scatter";
    case CIUIC_OP_ALL_TO_ALL:
      return "all-to-all";
    case CIUIC_OP_SEND:
      return "send";
    case CIUIC_OP_RECV:
      return "recv";
    case CIUIC_OP_BARRIER:
      return "barrier";
    default:
      return "unknown operation";
  }
}

bool reduces(uint32_t op) { return op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_REDUCE_SCATTER; }

bool can_reduce(uint32_t reduce, ciuic_dtype dtype) {
  const bool number = is_float(dtype) || same(dtype, kI32) || same(dtype, kI64) || same(dtype, kU8);
  switch (reduce) {
    case CIUIC_REDUCE_SUM:
    case CIUIC_REDUCE_MIN:
    case CIUIC_REDUCE_MAX:
    case CIUIC_REDUCE_PROD:
      return number;
    case CIUIC_REDUCE_AVG:
      return is_float(dtype);
    default:
      return false;
  }
}

/// A checked request: what remains are addresses and counts.
struct Request {
  std::string what;
  uint32_t op = 0;
  uint32_t reduce = 0;
  ciuic_dtype dtype{};
  const char* in = nullptr;
  char* out = nullptr;
  int64_t n = 0;  // as the contract's table has it
  int64_t part_bytes = 0;
  int root = 0;
  int rank = 0;
  int world = 1;
  bool tree = false;
};

class Checker {
 public:
  Checker(const ciuic_collective& c, int rank, int world) : c_(c) {
    request_.what = "gloo: " + std::string(op_name(c.op)) + " #" + std::to_string(c.sequence);
    if (c.label.size > 0) {
      request_.what += " \"" + std::string(to_view(c.label)) + "\"";
    }
    request_.op = c.op;
    request_.reduce = c.reduce;
    request_.root = c.peer;
    request_.rank = rank;
    request_.world = world;
  }

  Request check() {
    const ciuic_tensor* shown = c_.out != nullptr ? c_.out : c_.in;
    request_.dtype = shown == nullptr ? kU8 : shown->t.dtype;
    request_.what += " (" + std::to_string(shown == nullptr ? 0 : tensor_bytes(*shown)) +
                     " bytes, rank " + std::to_string(request_.rank) + " of " +
                     std::to_string(request_.world) + ")";
    check_supported(shown == nullptr ? ciuic_device{CIUIC_DEVICE_CPU, 0} : shown->t.device);
    if (c_.op != CIUIC_OP_BARRIER) {
      check_tensors();
    }
    request_.tree = (c_.flags & CIUIC_COLLECTIVE_TREE) != 0;
    return request_;
  }

 private:
  [[noreturn]] void refuse(int32_t code, const std::string& why) const {
    throw Error(code, request_.what + ": " + why);
  }

  void check_supported(ciuic_device device) const {
    if (capability_bits(c_.op, reduces(c_.op) ? c_.reduce : 0, request_.dtype, device) == 0) {
      refuse(CIUIC_UNIMPLEMENTED, "not supported for reduction " + std::to_string(c_.reduce) +
                                      " of " + dtype_name(request_.dtype) + " on device type " +
                                      std::to_string(device.type) + "; ask capabilities first");
    }
    if (c_.in_counts != nullptr || c_.in_offsets != nullptr || c_.out_counts != nullptr ||
        c_.out_offsets != nullptr) {
      refuse(CIUIC_UNIMPLEMENTED, "uneven parts are not supported; pad them");
    }
    if ((c_.factor != 0 && c_.factor != 1) || c_.vote != 0) {
      refuse(CIUIC_UNIMPLEMENTED, "factor and vote are not supported");
    }
    if ((c_.flags & ~uint32_t{CIUIC_COLLECTIVE_TREE | CIUIC_COLLECTIVE_WIDE}) != 0) {
      refuse(CIUIC_UNIMPLEMENTED, "unknown flags " + std::to_string(c_.flags));
    }
  }

  void check_tensor(const ciuic_tensor* t, const char* name) const {
    if (t == nullptr) {
      refuse(CIUIC_INVALID, std::string(name) + " is missing");
    }
    if (!is_contiguous(*t)) {
      refuse(CIUIC_INVALID, std::string(name) + " is not dense in row-major order");
    }
    if (!same(t->t.dtype, request_.dtype)) {
      refuse(CIUIC_INVALID,
             "in has " + dtype_name(t->t.dtype) + ", out " + dtype_name(request_.dtype));
    }
  }

  void check_tensors() {
    check_tensor(c_.out, "out");
    request_.out = static_cast<char*>(tensor_data(*c_.out));
    if (c_.op == CIUIC_OP_BROADCAST) {
      if (c_.peer < 0 || c_.peer >= request_.world) {
        refuse(CIUIC_INVALID, "root " + std::to_string(c_.peer) + " is not in the group");
      }
      request_.n = num_elements(*c_.out);
    } else {
      check_tensor(c_.in, "in");
      request_.in = static_cast<const char*>(tensor_data(*c_.in));
      const int64_t in = num_elements(*c_.in);
      const int64_t out = num_elements(*c_.out);
      const int64_t in_parts = c_.op == CIUIC_OP_REDUCE_SCATTER ? request_.world : 1;
      const int64_t out_parts = c_.op == CIUIC_OP_ALL_GATHER ? request_.world : 1;
      if (in * out_parts != out * in_parts) {
        refuse(CIUIC_INVALID,
               "in has " + std::to_string(in) + " elements, out " + std::to_string(out));
      }
      request_.n = in / in_parts;
    }
    request_.part_bytes = request_.n * dtype_bytes(request_.dtype);
  }

  const ciuic_collective& c_;
  Request request_;
};

void copy(void* to, const void* from, int64_t bytes) {
  if (to != from && bytes > 0) {
    std::memmove(to, from, static_cast<size_t>(bytes));
  }
}

std::shared_ptr<Buffer> scratch(const Host& host, int64_t bytes) {
  return std::make_shared<Buffer>(host, ciuic_device{CIUIC_DEVICE_CPU, 0},
                                  static_cast<size_t>(bytes));
}

/// Everybody's `in` to everybody, as parts of a new buffer, in one step.
std::shared_ptr<Buffer> exchange(const Request& r, const Host& host, Operation& operation) {
  const int64_t bytes = r.part_bytes;
  auto copies = scratch(host, bytes * r.world);
  auto all = scratch(host, bytes * r.world);
  for (int p = 0; p < r.world; ++p) {
    copy(copies->bytes() + p * bytes, r.in, bytes);
  }
  operation.parts.emplace_back(
      [copies, all, bytes](ProcessGroup& group, Milliseconds timeout, Done done) {
        group.all_to_all(copies->data(), all->data(), bytes, timeout, std::move(done));
      });
  return all;
}

void all_reduce_by_exchange(const Request& r, const Host& host, Operation& operation) {
  operation.finish = [r, all = exchange(r, host, operation)] {
    reduce_parts(r.dtype, r.reduce, all->bytes(), r.part_bytes, r.world, r.n, r.out);
  };
}

void all_reduce_by_ring(const Request& r, const Host& host, Operation& operation) {
  const bool wide = is_narrow(r.dtype);
  const ciuic_dtype type = wide ? kF32 : r.dtype;
  std::shared_ptr<Buffer> floats = wide ? scratch(host, r.n * 4) : nullptr;
  void* data = wide ? floats->data() : r.out;
  if (wide) {
    widen(r.dtype, r.in, static_cast<float*>(data), r.n);
  } else {
    copy(r.out, r.in, r.part_bytes);
  }
  const bool keys =
      is_float(type) && (r.reduce == CIUIC_REDUCE_MIN || r.reduce == CIUIC_REDUCE_MAX);
  ciuic_dtype travels = type;
  if (keys) {
    to_order_keys_(type, r.reduce, data, r.n);
    travels = type.bits == 64 ? kI64 : kI32;
  }
  const uint32_t reduce = r.reduce == CIUIC_REDUCE_AVG ? uint32_t{CIUIC_REDUCE_SUM} : r.reduce;
  operation.parts.emplace_back(
      [data, n = r.n, travels, reduce](ProcessGroup& group, Milliseconds timeout, Done done) {
        group.all_reduce(data, n, travels, reduce, timeout, std::move(done));
      });
  operation.finish = [r, type, keys, data, floats] {
    if (keys) {
      from_order_keys_(type, data, r.n);
    }
    if (r.reduce == CIUIC_REDUCE_AVG) {
      divide_(type, data, r.n, r.world);
    }
    if (floats) {
      narrow(r.dtype, static_cast<const float*>(data), r.out, r.n);
    }
  };
}

void reduce_scatter(const Request& r, const Host& host, Operation& operation) {
  auto parts = scratch(host, r.part_bytes * r.world);
  operation.parts.emplace_back([r, parts](ProcessGroup& group, Milliseconds timeout, Done done) {
    group.all_to_all(r.in, parts->data(), r.part_bytes, timeout, std::move(done));
  });
  operation.finish = [r, parts] {
    reduce_parts(r.dtype, r.reduce, parts->bytes(), r.part_bytes, r.world, r.n, r.out);
  };
}

void all_gather(const Request& r, const Host& host, Operation& operation) {
  if (r.part_bytes <= kSmallBytes) {
    operation.finish = [r, all = exchange(r, host, operation)] {
      copy(r.out, all->data(), r.part_bytes * r.world);
    };
    return;
  }
  copy(r.out + r.rank * r.part_bytes, r.in, r.part_bytes);
  for (int root = 0; root < r.world; ++root) {
    operation.parts.emplace_back([r, root](ProcessGroup& group, Milliseconds timeout, Done done) {
      group.broadcast(r.out + root * r.part_bytes, r.part_bytes, root, timeout, std::move(done));
    });
  }
}

void broadcast(const Request& r, Operation& operation) {
  operation.parts.emplace_back([r](ProcessGroup& group, Milliseconds timeout, Done done) {
    group.broadcast(r.out, r.part_bytes, r.root, timeout, std::move(done));
  });
}

void barrier(Operation& operation) {
  operation.parts.emplace_back([](ProcessGroup& group, Milliseconds timeout, Done done) {
    group.barrier(timeout, std::move(done));
  });
}

void add_parts(const Request& r, const Host& host, Operation& operation) {
  switch (r.op) {
    case CIUIC_OP_ALL_REDUCE:
      return r.tree || r.part_bytes <= kSmallBytes ? all_reduce_by_exchange(r, host, operation)
                                                   : all_reduce_by_ring(r, host, operation);
    case CIUIC_OP_REDUCE_SCATTER:
      return reduce_scatter(r, host, operation);
    case CIUIC_OP_ALL_GATHER:
      return all_gather(r, host, operation);
    case CIUIC_OP_BROADCAST:
      return broadcast(r, operation);
    default:
      return barrier(operation);
  }
}

}  // namespace

uint64_t capability_bits(uint32_t op, uint32_t reduce, ciuic_dtype dtype, ciuic_device device) {
  const bool host_memory = device.type == CIUIC_DEVICE_CPU || device.type == CIUIC_DEVICE_CUDA_HOST;
  const bool whole_bytes = dtype.bits > 0 && dtype.bits % 8 == 0 && dtype.lanes == 1;
  const bool moves = (op == CIUIC_OP_ALL_GATHER || op == CIUIC_OP_BROADCAST) && whole_bytes;
  const bool known = reduces(op) ? can_reduce(reduce, dtype) : moves || op == CIUIC_OP_BARRIER;
  if (!host_memory || !known) {
    return 0;
  }
  constexpr uint64_t kAlways = CIUIC_COMM_SUPPORTED | CIUIC_COMM_ASYNC | CIUIC_COMM_DETERMINISTIC;
  const uint64_t tree = reduces(op) ? uint64_t{CIUIC_COMM_TREE} : 0;
  const uint64_t wide = reduces(op) && is_narrow(dtype) ? uint64_t{CIUIC_COMM_WIDE} : 0;
  return kAlways | tree | wide;
}

Operation plan(const ciuic_collective& request, const Host& host, int rank, int world,
               std::chrono::nanoseconds default_timeout) {
  const Request r = Checker(request, rank, world).check();
  Operation operation;
  operation.what = r.what;
  operation.timeout =
      request.timeout_ns <= 0 ? default_timeout : std::chrono::nanoseconds(request.timeout_ns);
  const bool empty = r.n == 0 && r.op != CIUIC_OP_BARRIER;
  if (world == 1) {
    copy(r.out, r.in == nullptr ? r.out : r.in, r.part_bytes);  // every collective of one rank
  } else if (!empty) {
    add_parts(r, host, operation);
  }
  return operation;
}

}  // namespace ciuic::plugins::gloo
