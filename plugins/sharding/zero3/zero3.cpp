// SPDX-License-Identifier: MIT
//
// Sharding "zero3": values are cut too (ZeRO, arXiv:1910.02054, sec. 5.3). A unit is gathered when it is
// bound and given up when it is dropped; the next unit of the schedule is gathered ahead.
#include "sharding/staged_sharding.h"

namespace ciuic::plugins::zero3 {
namespace {

class Zero3 final : public stages::StagedSharding {
 public:
  static constexpr const char* name = "zero3";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "values are sharded too: a unit is gathered when it is used";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options = option_table(
      stages::bucket_size_option("Parameters of a unit that are gathered and reduced together"),
      stages::name_bad_rank_option(), stages::shard_ranks_option(), stages::offload_option());

  static void validate(const Context& context) { stages::check_shard_ranks(context); }

  explicit Zero3(const Context& context)
      : StagedSharding(context, stages::settings_of(context, name, 3)) {}
};

}  // namespace
}  // namespace ciuic::plugins::zero3

CIUIC_PLUGINS(ciuic::plugins::zero3::Zero3)
