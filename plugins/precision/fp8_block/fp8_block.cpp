// SPDX-License-Identifier: MIT
//
// Precision "fp8_block": DeepSeek-V3's FP8 training recipe (arXiv:2412.19437, sec. 3.3). The three
// products of each linear module take E4M3 operands with fine-grained scales; recipe.h says which
// modules, quantise.h how numbers become E4M3, block_product.h how they are summed. Everything else
// is as in the policy bf16: bf16 values and activations, fp32 gradients, masters and norms.
//
// On a CPU this is an emulation that is exact by its definition: the numbers that FP8 hardware with
// fp32 accumulation would multiply, summed in a fixed order, so that a recipe can be studied without
// a GPU. Not emulated: the 14 bits that an H800's tensor cores keep inside a stretch of 128, and the
// attention operator's own use of a stored output.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/precision.hpp>

#include "block_product.h"
#include "precision/sensitive_modules.h"
#include "precision/tile_rounding.h"
#include "recipe.h"

namespace ciuic::plugins::fp8_block {
namespace {

constexpr ciuic_dtype kCodes{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1};
constexpr uint32_t kAllPasses =
    1U << CIUIC_GEMM_FORWARD | 1U << CIUIC_GEMM_GRAD_INPUT | 1U << CIUIC_GEMM_GRAD_WEIGHT;
constexpr const char* kScales[] = {"paper", "exact", "power_of_two", nullptr};
constexpr const char* kStoredInputs[] = {"bf16", "e4m3", nullptr};
constexpr const char* kAttentionOutput[] = {"bf16", "e5m6", nullptr};

enum class Operand { Input, OutputGradient, Weight };

BlockShape block_of(Operand operand, uint32_t pass) {
  if (operand == Operand::Weight) {
    return kSquare;
  }
  return pass == CIUIC_GEMM_GRAD_WEIGHT ? kAlongColumns : kAlongRows;
}

/// How an operand of a pass is cast.
struct CastRule {
  BlockShape block;
  ScaleRule scale;
  Stored stored;
};
CastRule rule_of(const Recipe& recipe, Operand operand, uint32_t pass) {
  const BlockShape block = block_of(operand, pass);
  switch (operand) {
    case Operand::Weight:
      return {block, recipe.weight, Stored::Exact};
    case Operand::OutputGradient:
      return {block, recipe.output_gradient, Stored::Exact};
    default:
      return {block, recipe.input,
              pass == CIUIC_GEMM_GRAD_WEIGHT ? recipe.stored_input : Stored::Exact};
  }
}

class Fp8Block final : public Precision {
 public:
  static constexpr const char* name = "fp8_block";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "DeepSeek-V3's FP8 recipe: E4M3 products with a scale a block, the rest as bf16";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  static constexpr std::array<const char*, 2> features{"cast:row_major", nullptr};
  static constexpr uint32_t kShared = CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL;
  inline static const auto options = option_table(
      option_enum("scales", "paper", kScales,
                  "Scales as they are, powers of two, or powers of two where DeepSeek-V3 has them",
                  kShared),
      option_enum("stored_inputs", "bf16", kStoredInputs,
                  "How inputs of linear modules wait for backward: as computed, or in E4M3, from "
                  "which the gradient of the weight casts them again",
                  kShared),
      option_enum("attention_output", "bf16", kAttentionOutput,
                  "The same for the input of o_proj: as computed, or in E5M6", kShared));

  explicit Fp8Block(const Context& context)
      : Precision(context),
        config_(Config::from(context.options())),
        threads_(host().find_service<ciuic_thread_service>("ciuic.threads")),
        parallel_(
            [this](int64_t count, int64_t grain, const auto& body) { run(count, grain, body); }) {}

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view module, uint32_t role) const override {
    switch (role) {
      case CIUIC_ROLE_VALUE:
        return precision::is_sensitive(module) ? kF32 : kBF16;
      case CIUIC_ROLE_COMPUTE:
        return precision::is_sensitive(module)       ? kF32
               : recipe_of(module, config_).is_taken ? kCodes
                                                     : kBF16;
      case CIUIC_ROLE_ACTIVATION:
      case CIUIC_ROLE_ACTIVATION_GRAD:
        return kBF16;
      default:
        return kF32;
    }
  }

  void attach(ArrayView<ciuic_module> modules) override {
    recipes_.clear();
    kept_.clear();
    for (const ciuic_module& module : modules) {
      recipes_[module.id] = recipe_of(to_view(module.name), config_);
    }
  }

  [[nodiscard]] uint32_t hooks(uint32_t module, ciuic_device device) const override {
    const auto found = recipes_.find(module);
    const bool is_taken = found != recipes_.end() && found->second.is_taken;
    return is_taken && device.type == CIUIC_DEVICE_CPU ? kAllPasses : 0;
  }

  void format(const ciuic_cast& cast, ciuic_format& out) const override {
    const BlockShape block = cast_rule(cast).block;
    const int64_t rows = cast.in->t.shape[0];
    const int64_t columns = cast.in->t.shape[1];
    out.dtype = kCodes;
    out.scale_dtype = kF32;
    out.block_rows = block.rows;
    out.block_cols = block.columns;
    out.elements = rows * columns;
    out.scale_elements =
        (rows + block.rows - 1) / block.rows * ((columns + block.columns - 1) / block.columns);
  }

  void cast(const ciuic_cast& cast, const ciuic_stream* stream) override {
    refuse_stream(stream);
    const CastRule rule = cast_rule(cast);
    quantise(matrix_of(*cast.in, "the tensor to cast"), rule.block, rule.scale, Stored::Exact,
             parallel_, a_);
    auto* codes = static_cast<uint8_t*>(tensor_data(*cast.out));
    parallel_(a_.rows, 64, [&](int64_t begin, int64_t end) {
      precision::encode_e4m3((end - begin) * a_.columns, a_.row(begin), codes + begin * a_.columns);
    });
    std::copy(a_.scales.begin(), a_.scales.end(), elements<float>(*cast.scale));
  }

  void gemm(const ciuic_gemm& gemm, const ciuic_stream* stream) override {
    refuse_stream(stream);
    if (gemm.pass == 0 || (hooks(gemm.module, gemm.a->t.device) >> gemm.pass & 1U) == 0) {
      throw Error(CIUIC_UNIMPLEMENTED, "pass " + std::to_string(gemm.pass) + " of module " +
                                           std::to_string(gemm.module) +
                                           " is not one that hooks names");
    }
    if (gemm.pass == CIUIC_GEMM_GRAD_WEIGHT) {
      weight_gradient(gemm);
    } else {
      with_weight(gemm);
    }
  }

 private:
  using Key = std::pair<uint32_t, uint32_t>;  // module, pass
  struct Kept {
    uint64_t version = 0;
    std::vector<Panels> groups;
  };

  static void refuse_stream(const ciuic_stream* stream) {
    if (stream != nullptr) {
      throw Error(CIUIC_UNIMPLEMENTED, "fp8_block works on host memory only");
    }
  }

  void run(int64_t count, int64_t grain,
           const std::function<void(int64_t begin, int64_t end)>& body) const {
    if (count == 0) {
      return;
    }
    if (threads_ == nullptr || count <= grain) {
      body(0, count);
      return;
    }
    const auto call = [](void* context, int64_t begin, int64_t end) {
      (*static_cast<const std::function<void(int64_t, int64_t)>*>(context))(begin, end);
    };
    void* context = const_cast<std::function<void(int64_t, int64_t)>*>(&body);
    host().check(threads_->parallel(threads_->ctx, count, grain, call, context));
  }

  [[nodiscard]] CastRule cast_rule(const ciuic_cast& cast) const {
    const auto found = recipes_.find(cast.module);
    const bool is_weight = cast.role == CIUIC_ROLE_VALUE || cast.role == CIUIC_ROLE_COMPUTE;
    const bool is_gradient = cast.role == CIUIC_ROLE_ACTIVATION_GRAD;
    const ciuic_dtype in = cast.in->t.dtype;
    if (found == recipes_.end() || !found->second.is_taken || cast.in->t.ndim != 2 ||
        !(is_weight || is_gradient || cast.role == CIUIC_ROLE_ACTIVATION) ||
        !(same(in, kF32) || same(in, kBF16) || same(in, kF16))) {
      throw Error(CIUIC_UNIMPLEMENTED,
                  "fp8_block casts weights, activations and their gradients of the modules that it "
                  "multiplies, f32, bf16 or f16 matrices");
    }
    return rule_of(found->second,
                   is_weight     ? Operand::Weight
                   : is_gradient ? Operand::OutputGradient
                                 : Operand::Input,
                   cast.pass);
  }

  /// As E4M3 numbers, cast here or before.
  void take(const ciuic_gemm& gemm, const Matrix& matrix, const ciuic_tensor* scale,
            Operand operand, Quantised& out) const {
    const CastRule rule = rule_of(recipes_.at(gemm.module), operand, gemm.pass);
    const bool is_cast = same(matrix.dtype, kCodes);
    if (is_cast != (scale != nullptr)) {
      throw Error(CIUIC_INVALID,
                  is_cast ? "codes come without scales" : "scales come without codes");
    }
    if (is_cast) {
      take_cast(matrix, *scale, rule.block, out);
    } else {
      quantise(matrix, rule.block, rule.scale, rule.stored, parallel_, out);
    }
  }

  static void check_flags(const ciuic_gemm& gemm, uint32_t expected) {
    if ((gemm.flags & (CIUIC_GEMM_TRANS_A | CIUIC_GEMM_TRANS_B)) != expected) {
      throw Error(CIUIC_UNIMPLEMENTED,
                  "operands of this pass have other transpositions than those "
                  "of abi/precision.h");
    }
  }
  static void check_shape(bool fits) {
    if (!fits) {
      throw Error(CIUIC_INVALID, "the shapes of a, b and out do not make a product");
    }
  }
  static Factors factors_of(const ciuic_gemm& gemm) {
    return {static_cast<float>(gemm.alpha), static_cast<float>(gemm.beta)};
  }

  // ---- x W^T and dy W ----

  void with_weight(const ciuic_gemm& gemm) {
    const bool is_forward = gemm.pass == CIUIC_GEMM_FORWARD;
    check_flags(gemm, is_forward ? CIUIC_GEMM_TRANS_B : 0);
    const Matrix a = matrix_of(*gemm.a, "a");
    const Matrix out = matrix_of(*gemm.out, "out");
    const std::vector<RowRange> groups = gemm.group_ends == nullptr
                                             ? std::vector<RowRange>{{0, a.rows}}
                                             : groups_of(*gemm.group_ends, a.rows);
    const std::vector<Panels>& weights = weights_of(gemm, groups.size(), is_forward);
    check_shape(out.rows == a.rows && weights.size() == groups.size());
    take(gemm, a, gemm.a_scale, is_forward ? Operand::Input : Operand::OutputGradient, a_);
    for (size_t g = 0; g < groups.size(); ++g) {
      check_shape(weights[g].depth == a.columns && weights[g].width == out.columns);
      block_product(a_, false, groups[g].begin, weights[g], factors_of(gemm),
                    out.some_rows(groups[g].begin, groups[g].end), parallel_);
    }
  }

  /// The weights of all groups, cast and packed; kept as long as b_version says.
  const std::vector<Panels>& weights_of(const ciuic_gemm& gemm, size_t groups, bool is_forward) {
    Kept& kept = gemm.b_version == 0 ? passing_ : kept_[{gemm.module, gemm.pass}];
    if (gemm.b_version != 0 && kept.version == gemm.b_version && kept.groups.size() == groups) {
      return kept.groups;
    }
    if (gemm.group_ends != nullptr &&
        (gemm.b->t.ndim != 3 || gemm.b->t.shape[0] != static_cast<int64_t>(groups))) {
      throw Error(CIUIC_INVALID,
                  "b has no matrix for each of " + std::to_string(groups) + " groups");
    }
    kept.version = 0;  // until it is whole
    kept.groups.resize(groups);
    for (size_t g = 0; g < groups; ++g) {
      const Matrix b = gemm.group_ends == nullptr
                           ? matrix_of(*gemm.b, "b")
                           : matrix_of(*gemm.b, static_cast<int64_t>(g), "b");
      take(gemm, b, gemm.b_scale, Operand::Weight, b_);
      pack(b_, is_forward, parallel_, kept.groups[g]);
    }
    kept.version = gemm.b_version;
    return kept.groups;
  }

  // ---- dy^T x ----

  void weight_gradient(const ciuic_gemm& gemm) {
    check_flags(gemm, CIUIC_GEMM_TRANS_A);
    const Matrix dy = matrix_of(*gemm.a, "a");
    const Matrix x = matrix_of(*gemm.b, "b");
    check_shape(dy.rows == x.rows);
    if (gemm.group_ends == nullptr) {
      weight_gradient(gemm, dy, x, matrix_of(*gemm.out, "out"));
      return;
    }
    const std::vector<RowRange> groups = groups_of(*gemm.group_ends, dy.rows);
    check_shape(gemm.out->t.ndim == 3 &&
                gemm.out->t.shape[0] == static_cast<int64_t>(groups.size()));
    if (gemm.a_scale != nullptr || gemm.b_scale != nullptr) {
      throw Error(CIUIC_UNIMPLEMENTED,
                  "tiles along the tokens begin anew with each group, which "
                  "operands that were cast whole do not");
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      weight_gradient(gemm, dy.some_rows(groups[g].begin, groups[g].end),
                      x.some_rows(groups[g].begin, groups[g].end),
                      matrix_of(*gemm.out, static_cast<int64_t>(g), "out"));
    }
  }

  void weight_gradient(const ciuic_gemm& gemm, const Matrix& dy, const Matrix& x,
                       const Matrix& out) {
    check_shape(out.rows == dy.columns && out.columns == x.columns);
    take(gemm, dy, gemm.a_scale, Operand::OutputGradient, a_);
    take(gemm, x, gemm.b_scale, Operand::Input, b_);
    passing_.groups.resize(1);
    pack(b_, false, parallel_, passing_.groups[0]);
    block_product(a_, true, 0, passing_.groups[0], factors_of(gemm), out, parallel_);
  }

  const Config config_;
  const ciuic_thread_service* threads_;
  const Parallel parallel_;
  std::map<uint32_t, Recipe> recipes_;  // by module
  std::map<Key, Kept> kept_;
  // Memory that calls use one after another.
  Kept passing_;
  Quantised a_, b_;
};

}  // namespace
}  // namespace ciuic::plugins::fp8_block

CIUIC_PLUGINS(ciuic::plugins::fp8_block::Fp8Block)
