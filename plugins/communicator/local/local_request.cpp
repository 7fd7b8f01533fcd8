// SPDX-License-Identifier: MIT
#include "local_request.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include <ciuic/abi/services.h>
#include <ciuic/view.hpp>

namespace ciuic::plugins::local {
namespace {

bool reduces(uint32_t op) {
  return op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_REDUCE || op == CIUIC_OP_REDUCE_SCATTER;
}
bool cuts_in(uint32_t op) {
  return op == CIUIC_OP_REDUCE_SCATTER || op == CIUIC_OP_SCATTER || op == CIUIC_OP_ALL_TO_ALL;
}
bool cuts_out(uint32_t op) {
  return op == CIUIC_OP_ALL_GATHER || op == CIUIC_OP_GATHER || op == CIUIC_OP_ALL_TO_ALL;
}
bool is_message(uint32_t op) { return op == CIUIC_OP_SEND || op == CIUIC_OP_RECV; }
bool has_peer(uint32_t op) {
  return op == CIUIC_OP_REDUCE || op == CIUIC_OP_BROADCAST || op == CIUIC_OP_GATHER ||
         op == CIUIC_OP_SCATTER || is_message(op);
}
bool has_in(uint32_t op) {
  return op != CIUIC_OP_BROADCAST && op != CIUIC_OP_RECV && op != CIUIC_OP_BARRIER;
}
bool has_out(uint32_t op) { return op != CIUIC_OP_SEND && op != CIUIC_OP_BARRIER; }
bool on_host(ciuic_device d) {
  return d.type == CIUIC_DEVICE_CPU || d.type == CIUIC_DEVICE_CUDA_HOST;
}

/// A reduction over one rank is its input; which ones make sense is the type's affair all the same.
bool can_reduce(uint32_t reduce, ciuic_dtype dtype) {
  const bool is_float =
      same(dtype, kF32) || same(dtype, kF64) || same(dtype, kF16) || same(dtype, kBF16);
  const bool is_integer = same(dtype, kI32) || same(dtype, kI64) || same(dtype, kU8);
  if (reduce == CIUIC_REDUCE_OR || reduce == CIUIC_REDUCE_AND) {
    return is_integer;
  }
  return reduce >= CIUIC_REDUCE_SUM && reduce <= CIUIC_REDUCE_PROD && (is_float || is_integer);
}

[[noreturn]] void refuse(int32_t code, const std::string& why) {
  throw Error(code, "communicator local: " + why);
}

std::string place_of(const ciuic_collective& c) {
  return "op " + std::to_string(c.op) + " #" + std::to_string(c.sequence) +
         (c.label.size > 0 ? " \"" + std::string(to_view(c.label)) + "\"" : "");
}

void check_tensor(const ciuic_collective& c, const ciuic_tensor* t, const char* name) {
  if (t == nullptr) {
    refuse(CIUIC_INVALID, place_of(c) + ": " + name + " is missing");
  }
  if (!is_contiguous(*t)) {
    refuse(CIUIC_INVALID, place_of(c) + ": " + name + " is not dense in row-major order");
  }
  if (capability_bits(c.op, c.reduce, t->t.dtype, t->t.device) == 0) {
    refuse(CIUIC_UNIMPLEMENTED, place_of(c) + ": not supported for reduction " +
                                    std::to_string(c.reduce) + " of " + dtype_name(t->t.dtype) +
                                    " on device type " + std::to_string(t->t.device.type));
  }
}

/// The one part of a tensor: {first element, elements}. An offset without a count: as much as the
/// other side has.
std::pair<int64_t, int64_t> part(const ciuic_collective& c, int64_t size, int64_t other,
                                 const int64_t* counts, const int64_t* offsets) {
  const int64_t begin = offsets == nullptr ? 0 : offsets[0];
  const int64_t count = counts != nullptr ? counts[0] : offsets != nullptr ? other : size;
  if (count < 0 || begin < 0 || begin > size || count > size - begin) {
    refuse(CIUIC_INVALID, place_of(c) + ": a part of " + std::to_string(count) + " elements from " +
                              std::to_string(begin) + " is not in a tensor of " +
                              std::to_string(size));
  }
  return {begin, count};
}

Copy checked(const ciuic_tensor& in, const ciuic_tensor& out, std::pair<int64_t, int64_t> from,
             std::pair<int64_t, int64_t> to) {
  if (!same(in.t.dtype, out.t.dtype) || from.second != to.second) {
    refuse(CIUIC_INVALID, "one rank: got " + std::to_string(from.second) + " " +
                              dtype_name(in.t.dtype) + " in and " + std::to_string(to.second) +
                              " " + dtype_name(out.t.dtype) + " out, expected the same");
  }
  return {&in, &out, from.first, to.first, from.second};
}

}  // namespace

uint64_t capability_bits(uint32_t op, uint32_t reduce, ciuic_dtype dtype, ciuic_device device) {
  if (op < CIUIC_OP_ALL_REDUCE || op > CIUIC_OP_BARRIER) {
    return 0;
  }
  const bool whole_bytes = dtype.bits > 0 && dtype.bits % 8 == 0 && dtype.lanes == 1;
  // Off the host, memory is copied by "ciuic.tensor", which knows floats.
  const bool floats = dtype.code == CIUIC_DTYPE_FLOAT || dtype.code == CIUIC_DTYPE_BFLOAT;
  const bool can_copy = on_host(device) ? whole_bytes : floats && whole_bytes;
  if (op != CIUIC_OP_BARRIER && (!can_copy || (reduces(op) && !can_reduce(reduce, dtype)))) {
    return 0;
  }
  uint64_t bits = CIUIC_COMM_SUPPORTED | CIUIC_COMM_ASYNC | CIUIC_COMM_DETERMINISTIC;
  bits |= on_host(device) ? 0 : uint64_t{CIUIC_COMM_STREAM};
  bits |= reduces(op) ? uint64_t{CIUIC_COMM_TREE | CIUIC_COMM_WIDE} : 0;
  bits |= cuts_in(op) || cuts_out(op) ? uint64_t{CIUIC_COMM_UNEVEN} : 0;
  return bits;
}

void check(const ciuic_collective& c) {
  constexpr uint32_t kKnown = CIUIC_COLLECTIVE_TREE | CIUIC_COLLECTIVE_WIDE;
  if (c.op < CIUIC_OP_ALL_REDUCE || c.op > CIUIC_OP_BARRIER || (c.flags & ~kKnown) != 0) {
    refuse(CIUIC_UNIMPLEMENTED,
           place_of(c) + ": unknown operation or flags " + std::to_string(c.flags));
  }
  if (c.vote != 0 || (c.factor != 0 && c.factor != 1)) {
    refuse(CIUIC_UNIMPLEMENTED, place_of(c) + ": neither vote nor factor is honoured");
  }
  if (has_peer(c.op) && c.peer != 0) {
    refuse(CIUIC_INVALID, place_of(c) + ": rank " + std::to_string(c.peer) +
                              " is not in the group of rank 0 alone");
  }
  if (has_in(c.op)) {
    check_tensor(c, c.in, "in");
  }
  if (has_out(c.op)) {
    check_tensor(c, c.out, "out");
  }
  if ((!cuts_in(c.op) && (c.in_counts != nullptr || c.in_offsets != nullptr)) ||
      (!cuts_out(c.op) && (c.out_counts != nullptr || c.out_offsets != nullptr))) {
    refuse(CIUIC_INVALID, place_of(c) + ": counts and offsets of a tensor that is one part");
  }
}

Copy copy_of(const ciuic_collective& c) {
  const int64_t in = num_elements(*c.in);
  const int64_t out = num_elements(*c.out);
  return checked(*c.in, *c.out, part(c, in, out, c.in_counts, c.in_offsets),
                 part(c, out, in, c.out_counts, c.out_offsets));
}

std::vector<Copy> pair_messages(const std::vector<const ciuic_collective*>& messages) {
  std::map<uint32_t, std::pair<std::vector<const ciuic_tensor*>, std::vector<const ciuic_tensor*>>>
      by_tag;
  for (const ciuic_collective* c : messages) {
    auto& [sent, received] = by_tag[c->tag];
    if (c->op == CIUIC_OP_SEND) {
      sent.push_back(c->in);
    } else {
      received.push_back(c->out);
    }
  }
  std::vector<Copy> copies;
  for (const auto& [tag, ends] : by_tag) {
    const auto& [sent, received] = ends;
    if (sent.size() != received.size()) {
      refuse(CIUIC_INVALID,
             "a message to oneself needs its send and its receive in the same "
             "submit; got " +
                 std::to_string(sent.size()) + " sends and " + std::to_string(received.size()) +
                 " receives with tag " + std::to_string(tag));
    }
    for (size_t i = 0; i < sent.size(); ++i) {
      copies.push_back(checked(*sent[i], *received[i], {0, num_elements(*sent[i])},
                               {0, num_elements(*received[i])}));
    }
  }
  return copies;
}

void run(const Copy& copy, const Host& host, const ciuic_stream* stream) {
  if (copy.elements == 0) {
    return;
  }
  const int64_t width = dtype_bytes(copy.in->t.dtype);
  char* from = static_cast<char*>(tensor_data(*copy.in)) + copy.in_begin * width;
  char* to = static_cast<char*>(tensor_data(*copy.out)) + copy.out_begin * width;
  if (from == to) {
    return;
  }
  if (on_host(copy.in->t.device) && on_host(copy.out->t.device)) {
    std::memmove(to, from, static_cast<size_t>(copy.elements * width));
    return;
  }
  const Tensor in(from, copy.in->t.dtype, {copy.elements}, copy.in->t.device);
  const Tensor out(to, copy.out->t.dtype, {copy.elements}, copy.out->t.device);
  const auto& tensor = host.service<ciuic_tensor_service>("ciuic.tensor");
  host.check(tensor.copy(tensor.ctx, in.ptr(), out.ptr(), stream));
}

}  // namespace ciuic::plugins::local
