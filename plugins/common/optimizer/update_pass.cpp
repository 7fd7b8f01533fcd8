// SPDX-License-Identifier: MIT
#include "optimizer/update_pass.h"

#include <algorithm>
#include <utility>

namespace ciuic::plugins::optimizer {
namespace {

constexpr int64_t kBlocksPerThread = 4;  // fewer are not worth waking a thread

/// Operands with their blocks numbered through.
struct Work {
  const BlockRule& rule;
  std::vector<UpdateOperands> operands;
  std::vector<int64_t> first_block;  // of each, and the end

  void update(int64_t begin, int64_t end) const {
    auto at = static_cast<size_t>(std::upper_bound(first_block.begin(), first_block.end(), begin) -
                                  first_block.begin() - 1);
    for (int64_t block = begin; block < end; ++block) {
      while (first_block[at + 1] <= block) {
        ++at;
      }
      operands[at].update_block(block - first_block[at], [&](const Block& b) { rule(at, b); });
    }
  }
};

}  // namespace

UpdatePass::UpdatePass(const Host& host, std::string plugin, StateFormat state)
    : host_(host),
      plugin_(std::move(plugin)),
      state_(state),
      threads_(host.find_service<ciuic_thread_service>("ciuic.threads")) {}

void UpdatePass::run(const std::vector<const ciuic_update*>& updates, const ciuic_stream* stream,
                     const BlockRule& rule) const {
  if (stream != nullptr) {
    throw Error(CIUIC_UNIMPLEMENTED, "optimizer " + plugin_ + " works on host memory only");
  }
  Work work{rule, {}, {0}};
  work.operands.reserve(updates.size());
  for (const ciuic_update* u : updates) {
    work.operands.emplace_back(plugin_, *u, state_);
    work.first_block.push_back(work.first_block.back() + work.operands.back().num_blocks());
  }
  const int64_t num_blocks = work.first_block.back();
  if (threads_ == nullptr || num_blocks <= kBlocksPerThread) {
    work.update(0, num_blocks);
    return;
  }
  const auto body = [](void* context, int64_t begin, int64_t end) {
    static_cast<const Work*>(context)->update(begin, end);
  };
  host_.check(threads_->parallel(threads_->ctx, num_blocks, kBlocksPerThread, body, &work));
}

std::vector<const ciuic_update*> all_of(ArrayView<ciuic_update> updates) {
  std::vector<const ciuic_update*> out;
  out.reserve(updates.size());
  for (const ciuic_update& u : updates) {
    out.push_back(&u);
  }
  return out;
}

}  // namespace ciuic::plugins::optimizer
