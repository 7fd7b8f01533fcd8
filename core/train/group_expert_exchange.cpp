// SPDX-License-Identifier: MIT
#include "core/train/group_expert_exchange.h"

#include <utility>

#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

#include "core/parallel/collective.h"
#include "core/train/tensor_bridge.h"

namespace ciuic::core {
namespace {

/// Elements per rank and where they begin, of rows with `width` elements.
struct Spread {
  Spread(std::span<const int64_t> rows, int64_t width) {
    int64_t at = 0;
    for (const int64_t n : rows) {
      counts.push_back(n * width);
      offsets.push_back(at);
      at += n * width;
    }
  }
  std::vector<int64_t> counts, offsets;
};

int64_t width_of(const at::Tensor& rows) { return rows.dim() > 1 ? rows.size(1) : 1; }

class PendingParts final : public ExpertExchange::Pending {
 public:
  PendingParts(const Group& group, std::vector<ExpertExchange::Parts> parts,
               std::span<const int64_t> in_rows, std::span<const int64_t> out_rows)
      : group_(group), parts_(std::move(parts)) {
    std::vector<ciuic_collective> collectives;
    tensors_.reserve(2 * parts_.size());
    spreads_.reserve(2 * parts_.size());
    for (const ExpertExchange::Parts& p : parts_) {
      tensors_.push_back(to_abi(p.in));
      tensors_.push_back(to_abi(p.out));
      spreads_.emplace_back(in_rows, width_of(p.in));
      spreads_.emplace_back(out_rows, width_of(p.out));
      const Spread& in = spreads_[spreads_.size() - 2];
      const Spread& out = spreads_.back();
      ciuic_collective c{};
      c.struct_size = sizeof(c);
      c.op = CIUIC_OP_ALL_TO_ALL;
      c.in = tensors_[tensors_.size() - 2].ptr();
      c.out = tensors_.back().ptr();
      c.in_counts = in.counts.data();
      c.in_offsets = in.offsets.data();
      c.out_counts = out.counts.data();
      c.out_offsets = out.offsets.data();
      c.label = to_str("rows of experts");
      collectives.push_back(c);
    }
    ciuic_work* work = nullptr;
    group_.plugin().instance().check(
        group_.c().vt->submit(group_.c().self, to_array(collectives), nullptr, &work),
        "all_to_all");
    work_ = Work(work);
  }

  void wait() override {
    if (work_) {
      group_.plugin().instance().check(work_.get()->ops->wait(work_.get(), -1), "all_to_all");
    }
    work_ = Work();
  }

  /// The transport reads and writes these tensors until it is done, also when a failure ends the
  /// step before anybody waits.
  ~PendingParts() override {
    if (work_) {
      const Host host(group_.plugin().instance().host());
      (void)host.take(work_.get()->ops->wait(work_.get(), -1));
    }
  }

 private:
  const Group& group_;
  std::vector<ExpertExchange::Parts> parts_;
  std::vector<Tensor> tensors_;
  std::vector<Spread> spreads_;
  Work work_;
};

void require_uneven(const Group& group, ciuic_dtype dtype) {
  const uint64_t bits =
      group.plugin().capabilities(CIUIC_OP_ALL_TO_ALL, 0, dtype, {CIUIC_DEVICE_CPU, 0});
  if ((bits & CIUIC_COMM_SUPPORTED) == 0 || (bits & CIUIC_COMM_UNEVEN) == 0) {
    throw Failure(ExitCode::Plugin,
                  "communicator " + group.plugin().instance().name() +
                      " has no uneven all-to-all for " + dtype_name(dtype) +
                      ", which parallel.expert needs",
                  "choose another communicator, or parallel.expert = 1");
  }
}

}  // namespace

GroupExpertExchange::GroupExpertExchange(const Group& group, at::ScalarType rows) : group_(group) {
  require_uneven(group, to_dtype(rows));
  require_uneven(group, kF32);
  require_uneven(group, kI64);
}

std::vector<int64_t> GroupExpertExchange::counts(std::span<const int64_t> rows_E) const {
  std::vector<int64_t> out(rows_E.size());
  all_to_all(group_, rows_E, out, "counts of experts");
  return out;
}

std::unique_ptr<ExpertExchange::Pending> GroupExpertExchange::start(
    std::vector<Parts> parts, std::span<const int64_t> in_rows,
    std::span<const int64_t> out_rows) const {
  return std::make_unique<PendingParts>(group_, std::move(parts), in_rows, out_rows);
}

}  // namespace ciuic::core
