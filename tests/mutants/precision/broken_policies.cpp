// SPDX-License-Identifier: MIT
//
// Precision policies with one fault each, children of two correct ones.
#include "block_policy.hpp"
#include "half_policy.hpp"

namespace ciuic::mutants {
namespace {

// ---- dtypes ----

class NarrowMasters final : public HalfPolicy {
 public:
  static constexpr const char* name = "narrow_masters";
  static constexpr const char* summary = "norms have f32 values and f16 masters";
  using HalfPolicy::HalfPolicy;
  [[nodiscard]] ciuic_dtype dtype_for(std::string_view module, uint32_t role) const override {
    return role == CIUIC_ROLE_MASTER ? kF16 : HalfPolicy::dtype_for(module, role);
  }
};

/// Knows the modules of one model.
class KnownModulesOnly final : public HalfPolicy {
 public:
  static constexpr const char* name = "known_modules_only";
  static constexpr const char* summary = "refuses modules that it does not know";
  using HalfPolicy::HalfPolicy;
  [[nodiscard]] ciuic_dtype dtype_for(std::string_view module, uint32_t role) const override {
    if (!module.empty() && module.find("model") == std::string_view::npos && module != "lm_head") {
      throw Error(CIUIC_INVALID, "unknown module " + std::string(module));
    }
    return HalfPolicy::dtype_for(module, role);
  }
};

// ---- loss scale ----

class NeverFalls final : public HalfPolicy {
 public:
  static constexpr const char* name = "never_falls";
  static constexpr const char* summary = "skips steps and keeps the scale";
  static constexpr std::array<const char*, 1> features{nullptr};
  using HalfPolicy::HalfPolicy;

 protected:
  void step(bool is_finite) override {
    if (is_finite) {
      HalfPolicy::step(true);
    }
  }
};

class NeverGrows final : public HalfPolicy {
 public:
  static constexpr const char* name = "never_grows";
  static constexpr const char* summary = "the scale only falls";
  static constexpr std::array<const char*, 1> features{nullptr};
  using HalfPolicy::HalfPolicy;

 protected:
  void step(bool is_finite) override {
    if (!is_finite) {
      HalfPolicy::step(false);
    }
  }
};

/// Halves without a floor: 2^-1075 is 0.
class FallsToZero final : public HalfPolicy {
 public:
  static constexpr const char* name = "falls_to_zero";
  static constexpr const char* summary = "the scale has no minimum";
  static constexpr std::array<const char*, 1> features{nullptr};
  using HalfPolicy::HalfPolicy;

 protected:
  void step(bool is_finite) override {
    if (is_finite) {
      HalfPolicy::step(true);
    } else {
      scale_ /= 2;
    }
  }
};

/// The automaton runs when somebody looks.
class MovesWhenRead final : public HalfPolicy {
 public:
  static constexpr const char* name = "moves_when_read";
  static constexpr const char* summary = "a pending overflow is applied by loss_scale, once a read";
  using HalfPolicy::HalfPolicy;
  [[nodiscard]] double loss_scale() const override {
    if (pending_ > 0) {
      --pending_;
      factor_ /= 2;
    }
    return scale_ * factor_;
  }

 protected:
  void step(bool is_finite) override { pending_ += is_finite ? 0 : 2; }

 private:
  mutable int64_t pending_ = 0;
  mutable double factor_ = 1;
};

/// Depends on something that differs between ranks.
class OwnRankScale final : public HalfPolicy {
 public:
  static constexpr const char* name = "own_rank_scale";
  static constexpr const char* summary = "the window grows with the rank";
  explicit OwnRankScale(const Context& context) : HalfPolicy(context) { window_ += context.rank(); }
};

/// Saves the scale and forgets where in the window it was.
class WindowLost final : public HalfPolicy {
 public:
  static constexpr const char* name = "window_lost";
  static constexpr const char* summary = "after a load the window begins anew";
  using HalfPolicy::HalfPolicy;
  void load(const StateReader& reader) override {
    HalfPolicy::load(reader);
    last_overflow_ = steps_ - 1;
  }
};

/// PyTorch's and Megatron's rule under DeepSpeed's name: grows a step early.
class GrowsEarly final : public HalfPolicy {
 public:
  static constexpr const char* name = "grows_early";
  static constexpr const char* summary = "grows after window clean steps, not window + 1";
  using HalfPolicy::HalfPolicy;

 protected:
  void step(bool is_finite) override {
    const int64_t stable = steps_ - last_overflow_;
    if (is_finite && stable % window_ == 0) {
      left_ = hysteresis_;
      scale_ *= 2;
    } else if (!is_finite) {
      HalfPolicy::step(false);
    }
  }
};

// ---- casts ----

class Truncates final : public HalfPolicy {
 public:
  static constexpr const char* name = "truncates";
  static constexpr const char* summary = "casts toward zero";
  using HalfPolicy::HalfPolicy;

 protected:
  [[nodiscard]] float round(float steps) const override { return std::trunc(steps); }
};

class TiesAway final : public HalfPolicy {
 public:
  static constexpr const char* name = "ties_away";
  static constexpr const char* summary = "casts ties away from zero";
  using HalfPolicy::HalfPolicy;

 protected:
  [[nodiscard]] float round(float steps) const override { return std::round(steps); }
};

class NanBecomesNumber final : public HalfPolicy {
 public:
  static constexpr const char* name = "nan_becomes_number";
  static constexpr const char* summary = "NaN is cast to the largest number";
  using HalfPolicy::HalfPolicy;

 protected:
  [[nodiscard]] uint16_t not_a_number() const override { return 0x7BFF; }
};

class WrapsAround final : public HalfPolicy {
 public:
  static constexpr const char* name = "wraps_around";
  static constexpr const char* summary = "numbers past the largest become small";
  using HalfPolicy::HalfPolicy;

 protected:
  [[nodiscard]] uint16_t past_the_largest() const override { return 0x0400; }
};

// ---- blocks and products ----

class ZeroBlockIsNan final : public BlockPolicy {
 public:
  static constexpr const char* name = "zero_block_is_nan";
  static constexpr const char* summary = "the scale of zeros is 0, and 0 / 0 is NaN";
  using BlockPolicy::BlockPolicy;

 protected:
  [[nodiscard]] float scale_of(float largest) const override {
    return largest == 0 ? 0.0F : BlockPolicy::scale_of(largest);
  }
};

class NoSaturation final : public BlockPolicy {
 public:
  static constexpr const char* name = "no_saturation";
  static constexpr const char* summary = "the scale is rounded down, what does not fit becomes NaN";
  using BlockPolicy::BlockPolicy;

 protected:
  [[nodiscard]] float scale_of(float largest) const override {
    return largest == 0 ? 1.0F : std::exp2(std::floor(std::log2(largest / kLargest)));
  }
  [[nodiscard]] uint8_t past_the_largest(float) const override { return 0x7F; }
};

class BlockTiesAway final : public BlockPolicy {
 public:
  static constexpr const char* name = "block_ties_away";
  static constexpr const char* summary = "ties in blocks away from zero";
  using BlockPolicy::BlockPolicy;

 protected:
  [[nodiscard]] float round(float steps) const override { return std::round(steps); }
};

class RaggedEdgeUnseen final : public BlockPolicy {
 public:
  static constexpr const char* name = "ragged_edge_unseen";
  static constexpr const char* summary =
      "the scale does not look at the last column of a narrow block";
  using BlockPolicy::BlockPolicy;

 protected:
  [[nodiscard]] int64_t last_column(const Block& b) const override {
    return b.c1 - b.c0 < kBlock ? b.c1 - 1 : b.c1;
  }
};

class OneTermShort final : public BlockPolicy {
 public:
  static constexpr const char* name = "one_term_short";
  static constexpr const char* summary = "sums leave out their last term";
  using BlockPolicy::BlockPolicy;

 protected:
  [[nodiscard]] int64_t depth_of(int64_t depth) const override {
    return depth > 1 ? depth - 1 : depth;
  }
};

class IgnoresBeta final : public BlockPolicy {
 public:
  static constexpr const char* name = "ignores_beta";
  static constexpr const char* summary = "gradients are overwritten, not added to";
  using BlockPolicy::BlockPolicy;

 protected:
  [[nodiscard]] float beta_of(const ciuic_gemm&) const override { return 0; }
};

class OneVersionForAll final : public BlockPolicy {
 public:
  static constexpr const char* name = "one_version_for_all";
  static constexpr const char* summary = "kept casts are looked up by version alone";
  using BlockPolicy::BlockPolicy;

 protected:
  [[nodiscard]] Key key_of(const ciuic_gemm&) const override { return {0, 0}; }
};

}  // namespace
}  // namespace ciuic::mutants

CIUIC_PLUGINS(ciuic::mutants::NarrowMasters, ciuic::mutants::KnownModulesOnly,
              ciuic::mutants::NeverFalls, ciuic::mutants::NeverGrows, ciuic::mutants::FallsToZero,
              ciuic::mutants::MovesWhenRead, ciuic::mutants::OwnRankScale,
              ciuic::mutants::WindowLost, ciuic::mutants::GrowsEarly, ciuic::mutants::Truncates,
              ciuic::mutants::TiesAway, ciuic::mutants::NanBecomesNumber,
              ciuic::mutants::WrapsAround, ciuic::mutants::ZeroBlockIsNan,
              ciuic::mutants::NoSaturation, ciuic::mutants::BlockTiesAway,
              ciuic::mutants::RaggedEdgeUnseen, ciuic::mutants::OneTermShort,
              ciuic::mutants::IgnoresBeta, ciuic::mutants::OneVersionForAll)
