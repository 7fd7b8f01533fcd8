// SPDX-License-Identifier: MIT
//
// Sharding "zero2": gradients are cut too (ZeRO, arXiv:1910.02054, sec. 5.2). A bucket's memory comes
// with a micro-batch's backward and goes with its reduction; only this rank's part stays.
#include "sharding/staged_sharding.h"

namespace ciuic::plugins::zero2 {
namespace {

class Zero2 final : public stages::StagedSharding {
 public:
  static constexpr const char* name = "zero2";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "gradients are sharded too: a rank keeps the sum of its part only";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options = option_table(
      stages::bucket_size_option("Gradients of a unit that are reduced together; what is larger is "
                                 "reduced piece by piece"),
      stages::name_bad_rank_option(), stages::shard_ranks_option(), stages::offload_option());

  static void validate(const Context& context) { stages::check_shard_ranks(context); }

  explicit Zero2(const Context& context)
      : StagedSharding(context, stages::settings_of(context, name, 2)) {}
};

}  // namespace
}  // namespace ciuic::plugins::zero2

CIUIC_PLUGINS(ciuic::plugins::zero2::Zero2)
