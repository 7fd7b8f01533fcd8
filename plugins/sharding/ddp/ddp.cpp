// SPDX-License-Identifier: MIT
//
// Sharding "ddp": every rank holds everything; gradients are summed over the ranks while backward
// runs (PyTorch Distributed, arXiv:2006.15704). The reference that other strategies are compared
// with: stage 0 of sharding/staged_sharding.h.
#include "sharding/staged_sharding.h"

namespace ciuic::plugins::ddp {
namespace {

class Ddp final : public stages::StagedSharding {
 public:
  static constexpr const char* name = "ddp";
  static constexpr const char* version = "1.1.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "every rank holds everything; gradients are summed during backward";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options = option_table(
      stages::bucket_size_option(
          "Gradients that are summed in one all-reduce; smaller starts earlier, larger "
          "has less overhead"),
      stages::name_bad_rank_option());

  explicit Ddp(const Context& context)
      : StagedSharding(context, {"sharding ddp", 0, context.options().i64("bucket_size"), 0,
                                 context.options().boolean("name_bad_rank")}) {}
};

}  // namespace
}  // namespace ciuic::plugins::ddp

CIUIC_PLUGINS(ciuic::plugins::ddp::Ddp)
