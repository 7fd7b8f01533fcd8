// SPDX-License-Identifier: MIT
//
// The built communicator CIUIC_RANK_PLUGIN as a host loads it, and instances of it with default options.
#pragma once

#include <dlfcn.h>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <ciuic/abi/ciuic.h>
#include <ciuic/testing/test_host.hpp>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

namespace ciuic::tests {

inline const ciuic_descriptor& gloo_descriptor() {
  static const ciuic_descriptor* const descriptor = [] {
    void* library = ::dlopen(CIUIC_BUILD_DIR "/" CIUIC_RANK_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw std::runtime_error(::dlerror());
    }
    using Query = const ciuic_descriptor* (*)(uint32_t, uint32_t);
    return reinterpret_cast<Query>(::dlsym(library, "ciuic_plugin_query"))(CIUIC_ABI_MAJOR, 0);
  }();
  return *descriptor;
}

/// A collective under construction: tensors that live as long as it.
struct Call {
  Tensor in, out;
  ciuic_collective c{};
  bool has_in = true;  // where the operation would take one
  bool has_out = true;

  /// Points the collective at its tensors.
  const ciuic_collective& ready() {
    const bool takes_in =
        c.op != CIUIC_OP_BROADCAST && c.op != CIUIC_OP_BARRIER && c.op != CIUIC_OP_RECV;
    const bool takes_out = c.op != CIUIC_OP_BARRIER && c.op != CIUIC_OP_SEND;
    c.struct_size = sizeof(c);
    c.in = takes_in && has_in ? in.ptr() : nullptr;
    c.out = takes_out && has_out ? out.ptr() : nullptr;
    return c;
  }
};

struct Setup {
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  std::string interface;
  bool one_machine = true;
};

/// One group. Throws ciuic::Error.
class Communicator {
 public:
  Communicator(testing::TestHost& host, int rank, int world, const Setup& setup)
      : host_(host), rank_(rank), world_(world) {
    std::vector<ciuic_option> options;
    for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(gloo_descriptor().options)) {
      ciuic_option option{sizeof(ciuic_option), 0, spec.type, 0, to_str(spec.key), spec.def};
      if (std::string_view(spec.key) == "timeout") {
        option.value.i = setup.timeout.count();
      } else if (std::string_view(spec.key) == "interface") {
        option.value.s = to_str(setup.interface);
      }
      options.push_back(option);
    }
    ciuic_create_args args{};
    args.struct_size = sizeof(args);
    args.host = host.table();
    args.options = to_array(options);
    args.rank = rank;
    args.world = world;
    args.local_rank = setup.one_machine ? rank : 0;
    args.local_world = setup.one_machine ? world : 1;
    args.device = {CIUIC_DEVICE_CPU, 0};
    host.host().check(gloo_descriptor().validate(&args));
    host.host().check(gloo_descriptor().create(&args, &self_));
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() {
    if (self_ != nullptr) {
      gloo_descriptor().destroy(self_);
    }
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world() const { return world_; }
  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype) const {
    uint64_t bits = 0;
    host_.host().check(vt().capabilities(self_, op, reduce, dtype, {CIUIC_DEVICE_CPU, 0}, &bits));
    return bits;
  }

  [[nodiscard]] Work submit(std::span<Call> calls) const {
    std::vector<ciuic_collective> collectives;
    for (Call& call : calls) {
      collectives.push_back(call.ready());
    }
    ciuic_work* work = nullptr;
    host_.host().check(vt().submit(self_, to_array(collectives), nullptr, &work));
    return Work(work);
  }
  [[nodiscard]] Work submit(Call call) const { return submit(std::span(&call, 1)); }
  void run(Call call) const { submit(std::move(call)).wait(host_.host()); }

  [[nodiscard]] std::unique_ptr<Communicator> split(std::vector<int32_t> ranks) const {
    ciuic_split request{};
    request.struct_size = sizeof(request);
    request.ranks = ranks.data();
    request.count = static_cast<uint32_t>(ranks.size());
    request.name = to_str("part");
    ciuic_instance* child = nullptr;
    host_.host().check(vt().split(self_, &request, &child));
    if (child == nullptr) {
      return nullptr;
    }
    int rank = 0;
    while (ranks[static_cast<size_t>(rank)] != rank_) {
      ++rank;
    }
    return std::unique_ptr<Communicator>(
        new Communicator(host_, rank, static_cast<int>(ranks.size()), child));
  }

  void abort(int32_t code) const { vt().abort(self_, code); }
  void check_health() const { host_.host().check(vt().health(self_)); }
  [[nodiscard]] Host host() const { return host_.host(); }

 private:
  Communicator(testing::TestHost& host, int rank, int world, ciuic_instance* self)
      : host_(host), rank_(rank), world_(world), self_(self) {}
  static const ciuic_communicator_vt& vt() {
    return *static_cast<const ciuic_communicator_vt*>(gloo_descriptor().vt);
  }

  testing::TestHost& host_;
  int rank_;
  int world_;
  ciuic_instance* self_ = nullptr;
};

inline Call all_reduce(void* in, void* out, ciuic_dtype dtype, int64_t n,
                       uint32_t reduce = CIUIC_REDUCE_SUM) {
  Call call{Tensor(in, dtype, {n}), Tensor(out, dtype, {n}), {}};
  call.c.op = CIUIC_OP_ALL_REDUCE;
  call.c.reduce = reduce;
  return call;
}

/// Of bytes that only move.
inline Call move(uint32_t op, void* in, int64_t in_count, void* out, int64_t out_count,
                 ciuic_dtype dtype, int32_t peer = 0) {
  Call call{Tensor(in, dtype, {in_count}), Tensor(out, dtype, {out_count}), {}};
  call.c.op = op;
  call.c.peer = peer;
  return call;
}
inline Call send(void* data, ciuic_dtype dtype, int64_t n, int32_t to, uint32_t tag = 0) {
  Call call = move(CIUIC_OP_SEND, data, n, nullptr, 0, dtype, to);
  call.c.tag = tag;
  return call;
}
inline Call receive(void* data, ciuic_dtype dtype, int64_t n, int32_t from, uint32_t tag = 0) {
  Call call = move(CIUIC_OP_RECV, nullptr, 0, data, n, dtype, from);
  call.c.tag = tag;
  return call;
}

inline Call barrier() {
  Call call;
  call.c.op = CIUIC_OP_BARRIER;
  return call;
}

}  // namespace ciuic::tests
