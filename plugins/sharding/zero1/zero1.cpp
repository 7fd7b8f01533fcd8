// SPDX-License-Identifier: MIT
//
// Sharding "zero1": masters and optimizer state are cut over the ranks (ZeRO, arXiv:1910.02054,
// sec. 5.1). Gradients are reduced and scattered while backward runs, each rank updates its part, and
// the parts of the values are gathered under the next forward: together the bytes of one all-reduce.
#include "sharding/staged_sharding.h"

namespace ciuic::plugins::zero1 {
namespace {

class Zero1 final : public stages::StagedSharding {
 public:
  static constexpr const char* name = "zero1";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "masters and optimizer state are sharded; values and gradients are whole";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options = option_table(
      stages::bucket_size_option(
          "Gradients that are reduced together; smaller starts earlier, larger has less overhead"),
      stages::name_bad_rank_option(), stages::shard_ranks_option(), stages::offload_option());

  static void validate(const Context& context) { stages::check_shard_ranks(context); }

  explicit Zero1(const Context& context)
      : StagedSharding(context, stages::settings_of(context, name, 1)) {}
};

}  // namespace
}  // namespace ciuic::plugins::zero1

CIUIC_PLUGINS(ciuic::plugins::zero1::Zero1)
