// SPDX-License-Identifier: MIT
#include "request.h"

#include <algorithm>
#include <utility>

#include <ciuic/view.hpp>

#include "capabilities.h"

namespace ciuic::plugins {
namespace {

/// Which tensors an operation uses on this rank, and which of them it cuts into a part per rank.
struct Shape {
  bool in = true;
  bool out = true;
  bool cuts_in = false;
  bool cuts_out = false;
};

Shape shape_of(uint32_t op, bool is_root) {
  switch (op) {
    case CIUIC_OP_REDUCE:
      return {true, is_root};
    case CIUIC_OP_REDUCE_SCATTER:
      return {true, true, true, false};
    case CIUIC_OP_ALL_GATHER:
      return {true, true, false, true};
    case CIUIC_OP_GATHER:
      return {true, is_root, false, true};
    case CIUIC_OP_SCATTER:
      return {is_root, true, true, false};
    case CIUIC_OP_ALL_TO_ALL:
      return {true, true, true, true};
    case CIUIC_OP_SEND:
      return {true, false};
    case CIUIC_OP_BROADCAST:
    case CIUIC_OP_RECV:
      return {false, true};
    case CIUIC_OP_BARRIER:
      return {false, false};
    default:
      return {true, true};
  }
}

class Checker {
 public:
  Checker(const std::string& who, const ciuic_collective& c, int rank, int world,
          std::chrono::nanoseconds timeout)
      : who_(who), c_(c), shape_(shape_of(c.op, c.peer == rank)) {
    r_.op = c.op;
    r_.reduce = reduces(c.op) ? c.reduce : 0;
    r_.tag = c.tag;
    r_.tree = (c.flags & CIUIC_COLLECTIVE_TREE) != 0;
    r_.peer = c.peer;
    r_.rank = rank;
    r_.world = world;
    r_.timeout = c.timeout_ns <= 0 ? timeout : std::chrono::nanoseconds(c.timeout_ns);
  }

  Request check() {
    describe();
    check_supported();
    check_peer();
    if (shape_.in) {
      check_tensor(c_.in, "in");
      r_.in = static_cast<const char*>(tensor_data(*c_.in));
    }
    if (shape_.out) {
      check_tensor(c_.out, "out");
      r_.out = static_cast<char*>(tensor_data(*c_.out));
    }
    check_counts();
    cut();
    return std::move(r_);
  }

 private:
  [[noreturn]] void refuse(int32_t code, const std::string& why) const {
    throw Error(code, r_.what + ": " + why);
  }

  /// The tensor that says what it is about: out, or in where there is no out.
  [[nodiscard]] const ciuic_tensor* shown() const {
    return shape_.out && c_.out != nullptr ? c_.out : c_.in != nullptr ? c_.in : c_.out;
  }

  void describe() {
    const ciuic_tensor* t = c_.op == CIUIC_OP_BARRIER ? nullptr : shown();
    r_.dtype = t == nullptr ? kU8 : t->t.dtype;
    r_.what = who_ + ": " + std::string(op_name(c_.op)) + " #" + std::to_string(c_.sequence);
    if (c_.label.size > 0) {
      r_.what += " \"" + std::string(to_view(c_.label)) + "\"";
    }
    if (is_message(c_.op)) {
      r_.what += std::string(c_.op == CIUIC_OP_SEND ? " to" : " from") + " group rank " +
                 std::to_string(c_.peer) + " with tag " + std::to_string(c_.tag);
    }
    r_.what += " (" + std::to_string(t == nullptr ? 0 : tensor_bytes(*t)) + " bytes, rank " +
               std::to_string(r_.rank) + " of " + std::to_string(r_.world) + ")";
  }

  void check_supported() const {
    const ciuic_tensor* t = shown();
    const ciuic_device device = t == nullptr ? ciuic_device{CIUIC_DEVICE_CPU, 0} : t->t.device;
    if (capability_bits(c_.op, r_.reduce, r_.dtype, device) == 0) {
      refuse(CIUIC_UNIMPLEMENTED, "not supported for reduction " + std::to_string(c_.reduce) +
                                      " of " + dtype_name(r_.dtype) + " on device type " +
                                      std::to_string(device.type) + "; ask capabilities first");
    }
    if ((c_.factor != 0 && c_.factor != 1) || c_.vote != 0) {
      refuse(CIUIC_UNIMPLEMENTED, "factor and vote are not supported");
    }
    if ((c_.flags & ~uint32_t{CIUIC_COLLECTIVE_TREE | CIUIC_COLLECTIVE_WIDE}) != 0) {
      refuse(CIUIC_UNIMPLEMENTED, "unknown flags " + std::to_string(c_.flags));
    }
  }

  void check_peer() const {
    if ((has_root(c_.op) || is_message(c_.op)) && (c_.peer < 0 || c_.peer >= r_.world)) {
      refuse(CIUIC_INVALID, "rank " + std::to_string(c_.peer) + " is not in the group of " +
                                std::to_string(r_.world));
    }
  }

  void check_tensor(const ciuic_tensor* t, const std::string& name) const {
    if (t == nullptr) {
      refuse(CIUIC_INVALID, name + " is missing");
    }
    if (!is_contiguous(*t)) {
      refuse(CIUIC_INVALID, name + " is not dense in row-major order");
    }
    if (!same(t->t.dtype, r_.dtype)) {
      refuse(CIUIC_INVALID, "in has " + dtype_name(t->t.dtype) + ", out " + dtype_name(r_.dtype));
    }
    if (t->t.device.type != CIUIC_DEVICE_CPU && t->t.device.type != CIUIC_DEVICE_CUDA_HOST) {
      refuse(CIUIC_UNIMPLEMENTED, name + " is on device type " + std::to_string(t->t.device.type));
    }
  }

  /// Counts and offsets of a tensor that is not cut would have no effect.
  void check_counts() const {
    if (!shape_.cuts_in && (c_.in_counts != nullptr || c_.in_offsets != nullptr)) {
      refuse(CIUIC_INVALID, "in is one part: in_counts and in_offsets must be NULL");
    }
    if (!shape_.cuts_out && (c_.out_counts != nullptr || c_.out_offsets != nullptr)) {
      refuse(CIUIC_INVALID, "out is one part: out_counts and out_offsets must be NULL");
    }
  }

  [[nodiscard]] int64_t in_elements() const { return num_elements(*c_.in); }
  [[nodiscard]] int64_t out_elements() const { return num_elements(*c_.out); }

  void cut() {
    if (shape_.in) {
      r_.in_parts = shape_.cuts_in ? parts(in_elements(), c_.in_counts, c_.in_offsets, "in")
                                   : std::vector{whole(in_elements())};
    }
    if (shape_.out) {
      r_.out_parts = shape_.cuts_out ? parts(out_elements(), c_.out_counts, c_.out_offsets, "out")
                                     : std::vector{whole(out_elements())};
    }
    check_own_sizes();
    if (shape_.cuts_out && shape_.out) {
      check_disjoint();
    }
  }

  [[nodiscard]] Part whole(int64_t elements) const { return {0, elements * dtype_bytes(r_.dtype)}; }

  [[nodiscard]] std::vector<Part> parts(int64_t elements, const int64_t* counts,
                                        const int64_t* offsets, const std::string& name) const {
    const int64_t even = even_count(elements, counts != nullptr || offsets != nullptr, name);
    std::vector<Part> cut;
    int64_t next = 0;
    for (int p = 0; p < r_.world; ++p) {
      const int64_t count = counts == nullptr ? even : counts[p];
      const int64_t begin = offsets == nullptr ? next : offsets[p];
      if (count < 0 || begin < 0 || begin > elements || count > elements - begin) {
        refuse(CIUIC_INVALID, name + "'s part for rank " + std::to_string(p) + " has " +
                                  std::to_string(count) + " elements from " +
                                  std::to_string(begin) + ", the tensor " +
                                  std::to_string(elements));
      }
      cut.push_back({begin * dtype_bytes(r_.dtype), count * dtype_bytes(r_.dtype)});
      next += count;
    }
    return cut;
  }

  /// Elements of a part when counts are not given.
  [[nodiscard]] int64_t even_count(int64_t elements, bool uneven, const std::string& name) const {
    const bool by_in = c_.op == CIUIC_OP_ALL_GATHER || c_.op == CIUIC_OP_GATHER;
    const bool by_out = c_.op == CIUIC_OP_REDUCE_SCATTER || c_.op == CIUIC_OP_SCATTER;
    const int64_t count = by_in ? in_elements() : by_out ? out_elements() : elements / r_.world;
    if (!uneven && count * r_.world != elements) {
      refuse(CIUIC_INVALID, name + " has " + std::to_string(elements) + " elements, expected " +
                                std::to_string(r_.world) + " parts of " + std::to_string(count));
    }
    return count;
  }

  /// What this rank gives itself has one size. A rank that is not the root knows no more than that.
  void check_own_sizes() const {
    if (r_.in_parts.empty() || r_.out_parts.empty()) {
      return;
    }
    const int64_t in = r_.in_part(r_.rank).bytes;
    const int64_t out = r_.out_part(r_.rank).bytes;
    if (in != out) {
      const int64_t width = dtype_bytes(r_.dtype);
      refuse(CIUIC_INVALID, "in has " + std::to_string(in / width) + " elements, out " +
                                std::to_string(out / width) + " for rank " +
                                std::to_string(r_.rank));
    }
  }

  void check_disjoint() const {
    std::vector<Part> sorted;
    for (const Part& part : r_.out_parts) {
      if (part.bytes > 0) {
        sorted.push_back(part);
      }
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const Part& a, const Part& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i - 1].begin + sorted[i - 1].bytes > sorted[i].begin) {
        refuse(CIUIC_INVALID, "parts of out overlap; give each rank its own elements");
      }
    }
  }

  const std::string& who_;
  const ciuic_collective& c_;
  const Shape shape_;
  Request r_;
};

}  // namespace

Request check_request(const std::string& who, const ciuic_collective& collective, int rank,
                      int world, std::chrono::nanoseconds default_timeout) {
  return Checker(who, collective, rank, world, default_timeout).check();
}

}  // namespace ciuic::plugins
