// SPDX-License-Identifier: MIT
#include "core/parallel/collective.h"

#include <array>
#include <vector>

#include <ciuic/view.hpp>

namespace ciuic::core {
namespace {

ciuic_collective make(uint32_t op, uint32_t reduce, const Tensor* tensor, std::string_view label) {
  ciuic_collective c{};
  c.struct_size = sizeof(c);
  c.op = op;
  c.reduce = reduce;
  c.in = tensor == nullptr ? nullptr : tensor->ptr();
  c.out = c.in;
  c.label = to_str(label);
  return c;
}

void run(const Group& group, const std::vector<ciuic_collective>& collectives, const char* op) {
  ciuic_work* work = nullptr;
  const Instance& blame = group.plugin().instance();
  blame.check(group.c().vt->submit(group.c().self, to_array(collectives), nullptr, &work), op);
  if (const Work owned(work); owned) {
    blame.check(work->ops->wait(work, -1), op);  // the collective has its own deadline
  }
}

}  // namespace

void reduce_in_place(const Group& group, std::span<double> sums, std::span<double> maxima,
                     std::string_view label) {
  if (group.size() == 1) {
    return;
  }
  const Tensor sum(sums.data(), kF64, {static_cast<int64_t>(sums.size())});
  const Tensor max(maxima.data(), kF64, {static_cast<int64_t>(maxima.size())});
  std::vector<ciuic_collective> both;
  if (!sums.empty()) {
    both.push_back(make(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, &sum, label));
  }
  if (!maxima.empty()) {
    both.push_back(make(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_MAX, &max, label));
  }
  run(group, both, "all_reduce");
}

void sum_in_place(const Group& group, std::span<int64_t> values, std::string_view label) {
  if (group.size() == 1 || values.empty()) {
    return;
  }
  const Tensor tensor(values.data(), kI64, {static_cast<int64_t>(values.size())});
  run(group, {make(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, &tensor, label)}, "all_reduce");
}

void all_to_all(const Group& group, std::span<const int64_t> in, std::span<int64_t> out,
                std::string_view label) {
  const Tensor from(const_cast<int64_t*>(in.data()), kI64, {static_cast<int64_t>(in.size())});
  const Tensor to(out.data(), kI64, {static_cast<int64_t>(out.size())});
  ciuic_collective c = make(CIUIC_OP_ALL_TO_ALL, 0, &from, label);
  c.out = to.ptr();
  run(group, {c}, "all_to_all");
}

void barrier(const Group& group, std::string_view label) {
  if (group.size() > 1) {
    run(group, {make(CIUIC_OP_BARRIER, 0, nullptr, label)}, "barrier");
  }
}

void agree(const Group& group, const Failure* mine, std::string_view during) {
  // One number orders the failures of all ranks: the exit code first, then the lower rank.
  const double my_code = mine == nullptr ? 0.0 : static_cast<double>(mine->code());
  std::array<double, 1> worst{my_code == 0.0 ? 0.0 : my_code * 1e6 + (1e6 - 1 - group.rank())};
  reduce_in_place(group, {}, worst, during);
  if (worst[0] == 0.0) {
    return;
  }
  if (mine != nullptr) {
    throw *mine;
  }
  const auto packed = static_cast<int64_t>(worst[0]);
  const int64_t rank = 1'000'000 - 1 - packed % 1'000'000;
  throw Failure(static_cast<ExitCode>(packed / 1'000'000),
                std::string(during) + " failed on rank " + std::to_string(rank),
                "that rank's own message says why");
}

}  // namespace ciuic::core
