// SPDX-License-Identifier: MIT
//
// Communicator "local": a group of one rank. Every collective is a copy, or nothing when it works
// in place. The smallest complete communicator, so also the one to read first.
//
// Left out: send and receive (there is nobody to talk to), votes and factors.
#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include <ciuic/abi/services.h>
#include <ciuic/communicator.hpp>

namespace ciuic::plugins {
namespace {

class Local final : public Communicator {
 public:
  static constexpr const char* name = "local";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "one rank; collectives are copies";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;

  explicit Local(const Context& context) : Communicator(context) { validate(context); }
  explicit Local(const Host& host) : Communicator(host) {}

  static void validate(const Context& context) {
    if (context.world() != 1) {
      throw Error(CIUIC_INVALID, "communicator local serves one rank, got world=" +
                                     std::to_string(context.world()) + "; use gloo");
    }
  }

  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                      ciuic_device device) const override {
    const bool is_collective = op >= CIUIC_OP_ALL_REDUCE && op <= CIUIC_OP_BARRIER &&
                               op != CIUIC_OP_SEND && op != CIUIC_OP_RECV;
    // Off the host, memory is copied by "ciuic.tensor", which knows floats.
    const bool is_float = dtype.code == CIUIC_DTYPE_FLOAT || dtype.code == CIUIC_DTYPE_BFLOAT;
    const bool is_host = device.type == CIUIC_DEVICE_CPU;
    if (!is_collective || reduce > CIUIC_REDUCE_AND || !(is_host || is_float)) {
      return 0;
    }
    return CIUIC_COMM_SUPPORTED | CIUIC_COMM_ASYNC | CIUIC_COMM_DETERMINISTIC | CIUIC_COMM_TREE |
           CIUIC_COMM_UNEVEN | CIUIC_COMM_WIDE | (is_host ? 0 : CIUIC_COMM_STREAM);
  }

  [[nodiscard]] Work submit(ArrayView<ciuic_collective> collectives,
                            const ciuic_stream* stream) override {
    health();
    for (const ciuic_collective& c : collectives) {
      run(c, stream);
    }
    return {};
  }

  [[nodiscard]] std::unique_ptr<Communicator> split(const ciuic_split& request) override {
    if (request.count == 0) {
      return nullptr;
    }
    if (request.count != 1 || request.ranks[0] != 0) {
      throw Error(CIUIC_INVALID, "communicator local has rank 0 alone, got a split of " +
                                     std::to_string(request.count) + " ranks");
    }
    return std::make_unique<Local>(host());
  }

  void health() override {
    if (const int32_t code = aborted_.load(); code != CIUIC_OK) {
      throw Error(code, "the communicator was aborted");
    }
  }
  void abort(int32_t code) noexcept override { aborted_ = code; }

 private:
  void run(const ciuic_collective& c, const ciuic_stream* stream) const {
    if (c.op == CIUIC_OP_SEND || c.op == CIUIC_OP_RECV) {
      throw Error(CIUIC_UNIMPLEMENTED, "communicator local has no peer to send to or receive from");
    }
    if (c.vote != 0 || (c.factor != 0 && c.factor != 1)) {
      throw Error(CIUIC_UNIMPLEMENTED, "communicator local honours neither vote nor factor");
    }
    if (c.op == CIUIC_OP_BROADCAST || c.op == CIUIC_OP_BARRIER) {
      return;
    }
    copy(*c.in, *c.out, stream);
  }

  void copy(const ciuic_tensor& in, const ciuic_tensor& out, const ciuic_stream* stream) const {
    if (!same(in.t.dtype, out.t.dtype) || num_elements(in) != num_elements(out)) {
      throw Error(CIUIC_INVALID, "one rank: got " + std::to_string(num_elements(in)) + " " +
                                     dtype_name(in.t.dtype) + " in and " +
                                     std::to_string(num_elements(out)) + " " +
                                     dtype_name(out.t.dtype) + " out, expected the same");
    }
    if (tensor_data(in) == tensor_data(out)) {
      return;
    }
    if (in.t.device.type == CIUIC_DEVICE_CPU && out.t.device.type == CIUIC_DEVICE_CPU) {
      std::memcpy(tensor_data(out), tensor_data(in), static_cast<size_t>(tensor_bytes(in)));
      return;
    }
    const auto& tensor = host().service<ciuic_tensor_service>("ciuic.tensor");
    host().check(tensor.copy(tensor.ctx, &in, &out, stream));
  }

  std::atomic<int32_t> aborted_{CIUIC_OK};
};

}  // namespace
}  // namespace ciuic::plugins

CIUIC_PLUGINS(ciuic::plugins::Local)
